"""`/v1/conversations`, `/v1/facts` and `/v1/tasks`.

Imports `http`, `openai`, `parsing`, `streaming`, `runs`, `memory` and lower units.
"""

"""The pages of a prompt: chosen, fitted into the token budget, summarized where needed.

Imports `checking`, `text`, and what :mod:`gateway.ask` may.
"""

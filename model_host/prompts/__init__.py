"""Chat prompts: templates rendered in a separate process, and tokenized.

Imports `replies` and `protocol`.
"""

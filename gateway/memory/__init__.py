"""Conversations that never run out of context: composing prompts, jobs, events.

Imports `vectors`, `inference`, `store` and below; of `tasks` only `values`.
"""

"""Conversations that never run out of context: prompts, summaries, facts, tasks. Imports `telemetry` and below."""

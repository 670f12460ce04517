"""Flows as event streams: server-sent events, JSON lines, merged streams. Shared by all dialects."""

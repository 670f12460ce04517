"""Flows as streams of server-sent events or JSON lines. Imports `http`."""

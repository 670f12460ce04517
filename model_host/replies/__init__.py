"""Replies: generated tokens split into text, tool calls and thoughts. Imports no llama_cpp."""

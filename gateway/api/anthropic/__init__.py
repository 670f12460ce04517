"""Anthropic's Messages API. Imports `http`, `parsing`, `streaming` and fields of `openai`."""

"""Benchmarks over HTTP for any server with OpenAI's chat completions. Imports `base`."""

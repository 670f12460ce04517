"""Health, metrics, loading of the models, and erasure from the request log. Imports `http`, `openai`, `parsing`."""

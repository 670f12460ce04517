"""Generations and embeddings as records of the request log. Shared by all dialects."""

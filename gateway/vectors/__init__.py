"""Embeddings of documents, made in the background, and of queries. Imports `inference`, `store` and below."""

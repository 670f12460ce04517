"""Embeddings of documents and queries. Imports `inference`, `store` and below."""

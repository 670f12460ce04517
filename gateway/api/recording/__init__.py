"""The request log: generations and embeddings of all dialects. Imports `streaming` and the services."""

"""The question flow: search terms, retrieval, background, answer, citation check.

Imports `inference`, `store` and below; of `wiki` only the values in `source` and `sketch`.
"""

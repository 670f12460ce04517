"""The question flow: search terms, retrieval, background, answer, citation check.

Imports `inference`, `store` and below; of `wiki` only `source` and `sketch`.
"""

"""Projects of source code and notes: a registry, a graph of definitions and calls, and the queries over it.

Imports `vectors`, `store` and below; of `wiki` only `source`.
"""

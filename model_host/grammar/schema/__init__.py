"""Converts JSON schemas to grammars: whatever a grammar allows satisfies its schema. Imports `gbnf` only.

Every keyword is honoured or refused with its path, never ignored; `docs/api.md` lists them. A grammar may allow less
than its schema: properties come in the schema's order, for example.
"""

"""JSON schemas as grammars: whatever the grammar allows satisfies the schema. Pure.

Every keyword is honoured or refused with its path, never ignored; `docs/api.md` says which. Where a schema leaves a
choice, the grammar may allow less than the schema: properties come in the schema's order, for example.
"""

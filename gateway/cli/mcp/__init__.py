"""`hearth mcp`. Imports `common`, and of `api` the tools."""

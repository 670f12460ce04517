"""`hearth mcp`."""

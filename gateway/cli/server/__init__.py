"""`hearth start`, `stop` and `status`. Imports `common`, and `server` when it starts."""

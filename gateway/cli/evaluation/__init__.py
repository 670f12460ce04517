"""`hearth eval`. Imports `common`, `evaluation`, `server` and lower units."""

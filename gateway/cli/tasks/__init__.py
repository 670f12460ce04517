"""`hearth tasks`. Imports `common`, and types of `store`."""

"""`hearth chat`. Imports `common` and `tasks`."""

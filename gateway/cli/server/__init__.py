"""`hearth start`, `stop` and `status`."""

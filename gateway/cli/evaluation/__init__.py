"""`hearth eval`."""

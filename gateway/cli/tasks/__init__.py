"""`hearth tasks`."""

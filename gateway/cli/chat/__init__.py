"""`hearth chat`."""

"""`hearth doctor`."""

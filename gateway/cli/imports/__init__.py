"""`hearth import` and `hearth import-wiki`."""

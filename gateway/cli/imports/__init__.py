"""`hearth import` and `hearth import-wiki`. Imports `common`, `memory`, `wiki` and `store`."""

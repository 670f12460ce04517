"""`hearth log`, and the replay of logged requests. Imports `common`, `inference`, `models` and `store`."""

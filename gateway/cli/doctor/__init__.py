"""`hearth doctor`: the machine, the settings and the installed service. Imports `common`, `server` and lower units."""

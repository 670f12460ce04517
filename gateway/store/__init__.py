"""SQLite: the only unit with SQL. Imports `base`."""

"""SQLite and PostgreSQL: the only unit with SQL. Imports `config` and `base`."""

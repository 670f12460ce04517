"""Request bodies and queries: types, errors, and the table of neutral fields. Imports no dialect."""

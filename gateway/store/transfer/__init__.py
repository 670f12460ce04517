"""Rows of conversations as export and import know them, and their checks; imports `gateway.store.memory`."""

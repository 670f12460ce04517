"""Tools for models of other programs: the Model Context Protocol. Imports `conversations`, `ask`, `streaming`.

Only `server.py` and `transport.py` import the package `mcp`, and only the first request imports these two.
"""

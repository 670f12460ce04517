"""Projects over HTTP: read only, for every key. Imports `http`, `parsing`, `code` and lower units.

Folders are registered on the command line.
"""

"""Projects over HTTP: read only, for every key. Folders are registered on the command line."""

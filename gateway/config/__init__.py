"""Settings: every key with its type, range and default, and where its value came from. Imports `base`."""

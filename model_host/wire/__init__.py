"""Requests in and events out, one JSON object per line. Imports `protocol`."""

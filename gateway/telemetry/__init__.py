"""Logs and Prometheus metrics. Imports `vectors`, `inference` and below."""

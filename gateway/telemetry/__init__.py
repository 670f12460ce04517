"""Logs, Prometheus metrics, and records of model calls. Imports `vectors`, `inference` and below."""

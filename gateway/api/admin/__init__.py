"""Health, readiness, metrics and the request log over HTTP."""

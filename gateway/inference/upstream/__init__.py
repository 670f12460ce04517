"""The model on other servers: OpenAI-compatible ones in place of the model host.

Imports what :mod:`gateway.inference` may, and the breaker and the meter of `process`. Imported only if `upstream` is
configured.
"""

"""The life of the child process: launch, supervision, message exchange, idle time, breaker.

Imports what :mod:`gateway.inference` may.
"""

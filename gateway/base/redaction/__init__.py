"""Secrets without a fixed form: told in sentences, or known by their shape. Imports `gateway.base.patterns` only."""

"""Secrets without a fixed form: told in sentences, or known by their shape. Imports nothing of hearth."""

"""Shared parts of the subcommands: options, the HTTP client, files, exit statuses, terminal output.

Imports no subcommand.
"""

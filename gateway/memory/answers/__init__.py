"""Replies that need no model, for small ones: what users have said about themselves, and their tasks.

Imports what :mod:`gateway.memory` does, and its history.
"""

"""The IRC client of hearth: answers in channels and in private, using only the HTTP API."""

from importlib.metadata import version

__version__ = version("hearth")

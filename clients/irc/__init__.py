"""The IRC client of hearth: answers in channels and in private, over the HTTP API alone."""

from importlib.metadata import version

__version__ = version("hearth")

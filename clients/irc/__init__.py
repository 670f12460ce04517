"""The IRC client of hearth: answers in channels and in private, using only the HTTP API.

Imports no other package of hearth.
"""

from importlib.metadata import version

__version__ = version("hearth")

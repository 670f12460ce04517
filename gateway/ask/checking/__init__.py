"""Checks of an answer against its pages: evidence, citations, unsafe text."""

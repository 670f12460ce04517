"""Checks of an answer against its pages: evidence, citations, unsafe text. Imports `text`, `store` and below."""

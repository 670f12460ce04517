"""Wikis as sources of pages: a local one and MediaWikis elsewhere.

Imports `vectors`, `inference`, `store` and below.
"""

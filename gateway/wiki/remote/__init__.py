"""A MediaWiki on another machine: requests, checked addresses, rate limits, page cache.

Imports `html`, `search`, `wikitext` and `store`.
"""

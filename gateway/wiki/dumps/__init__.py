"""MediaWiki XML dumps: decompressed, parsed and imported in batches; and the sample wiki.

Imports `wikitext` and `store`.
"""

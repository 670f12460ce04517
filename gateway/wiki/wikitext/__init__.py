"""MediaWiki wikitext to plain text with sections. Imports `base`, and types of `gateway.wiki`."""

"""MediaWiki wikitext to plain text with sections."""

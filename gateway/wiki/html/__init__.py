"""MediaWiki's HTML to plain text with sections. Imports `wikitext`."""

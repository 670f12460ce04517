"""MediaWiki wikitext as plain text with sections."""

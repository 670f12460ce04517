"""MediaWiki's HTML as plain text with sections."""

"""Wikis: the local one and MediaWikis behind an API. Imports `vectors`, `inference`, `store` and below."""

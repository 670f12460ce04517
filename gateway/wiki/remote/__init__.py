"""A MediaWiki on another machine: requests, checked addresses, politeness, page cache."""

"""The sample wiki: pages and their loader."""

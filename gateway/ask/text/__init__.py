"""Passages, sentences and words of pages and answers. Pure functions; imports only `store.fts`."""

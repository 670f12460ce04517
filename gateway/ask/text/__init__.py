"""Passages, sentences and words of pages and answers: pure functions that import only `store.fts`."""

"""Passages, sentences and words of pages and answers: pure functions.

Imports `base`, and of `store` the stop words.
"""

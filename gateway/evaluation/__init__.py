"""Runs question sets through the ask flow, scores and compares them. Imports `ask` and below."""

"""Runs question sets through the ask flow, scores and compares them. Imports `ask`, `memory` and below."""

"""Summaries: made by the model, checked against their source, stored, converted."""

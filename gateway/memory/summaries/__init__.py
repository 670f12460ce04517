"""Summaries: made by the model, checked against their source, stored, converted.

Imports `planning`, and what :mod:`gateway.memory` may.
"""

"""Answers to questions about a project without a model: from its graph, and quotations.

Imports what :mod:`gateway.code` may, and its queries.
"""

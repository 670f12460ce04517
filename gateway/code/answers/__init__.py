"""Answers to questions about a project without a model: from its graph, and quotations."""

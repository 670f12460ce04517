"""Prompts from chat templates, rendered in a worker process of their own."""

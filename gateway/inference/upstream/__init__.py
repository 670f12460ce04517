"""The model on other servers: OpenAI-compatible ones in place of the model host.

Imported only if `upstream` is configured.
"""

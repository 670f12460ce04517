"""The gateway: HTTP, wiki, prompts, storage, and the life of the model host."""

__version__ = "0.1.0"

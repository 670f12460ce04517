"""The gateway: HTTP, wiki, prompts, storage, and the life of the model host. Of `model_host` it imports `protocol`."""

__version__ = "0.1.0"

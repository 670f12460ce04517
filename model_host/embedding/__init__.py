"""The embedding host: its queue, its loop, its engine. Imports `batching`, `engine`, `wire` and `protocol`."""

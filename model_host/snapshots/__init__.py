"""KV sequences saved to disk and restored. Imports `batching` and `protocol`, no llama_cpp."""

"""KV sequences saved to disk and restored."""

"""Generated text as replies: text, tool calls, thoughts, stop strings."""

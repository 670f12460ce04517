"""The subset of Ollama's API that its clients need. Imports `http`, `openai`, `parsing`, `recording`, `streaming`."""

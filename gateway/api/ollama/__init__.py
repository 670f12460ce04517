"""The subset of Ollama's API that its clients need."""

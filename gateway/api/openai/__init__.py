"""OpenAI's API: chat completions, completions, responses, embeddings, models, tokens. Imports no other dialect."""

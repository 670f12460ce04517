"""`POST /ask`: a question in, an answer with citations out. Imports `http`, `openai`, `parsing`, `streaming`, `ask`."""

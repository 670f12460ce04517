"""`POST /ask`: a question in, an answer with citations out."""

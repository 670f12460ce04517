"""Search for pages by title, text and vectors."""

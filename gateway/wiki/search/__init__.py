"""Search for pages by title, text and vectors. Imports `vectors`, `store` and below."""

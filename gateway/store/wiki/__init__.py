"""Tables of wiki pages: import, full-text search, vectors, pages fetched from elsewhere. Imports `store`."""

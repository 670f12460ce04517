"""Pass 1: what a syntax tree says about one file, by language. Knows nothing of other files, and imports `base`."""

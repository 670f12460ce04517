"""Everything known before a model runs: the catalog, GGUF headers, prompt files. Imports `config` and `base`."""

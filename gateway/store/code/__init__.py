"""SQL of projects: their registry, files, definitions and edges. Imports `store` and `store.wiki`."""

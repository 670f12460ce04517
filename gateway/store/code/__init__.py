"""SQL of projects: their registry, files, definitions and edges."""

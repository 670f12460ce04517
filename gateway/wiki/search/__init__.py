"""Finding pages: by title, by text, by vectors, and by both fused."""

"""Constrained output: grammars followed byte by byte, JSON schemas turned into grammars. No llama_cpp."""

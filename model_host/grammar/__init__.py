"""Constrained output: grammars, and JSON schemas converted to grammars. Imports no llama_cpp."""

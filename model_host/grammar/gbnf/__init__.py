"""GBNF grammars: a parser with limits, and a matcher that works byte by byte. Pure: imports nothing of hearth.

docs/decisions/0013-grammars.md says why llama.cpp's own grammar engine is not used.
"""

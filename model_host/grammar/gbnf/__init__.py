"""Grammars: reading GBNF, refusing what would run away, and following the rest byte by byte. Pure.

Why llama.cpp's own engine for grammars is not used: docs/decisions/0013-grammars.md.
"""

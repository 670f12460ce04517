"""A folder of HTML, Markdown and text files, such as a program's manual, as pages of the local wiki.

Imports `dumps`, `html`, `wikitext` and `store`.
"""

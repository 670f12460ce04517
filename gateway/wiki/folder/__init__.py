"""A folder of HTML and Markdown files, such as a program's manual, as pages of the local wiki.

Imports `dumps`, `html`, `wikitext` and `store`.
"""

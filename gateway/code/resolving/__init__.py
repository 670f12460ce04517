"""Pass 2: what the names in a file mean, with the facts of all files of its project.

Imports `languages` and `store`.
"""

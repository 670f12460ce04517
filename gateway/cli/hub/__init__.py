"""`hearth pull`: model downloads from a Hugging Face hub or from packages.

Imports `common`, `models`, and the checks of addresses in `wiki.remote`.
"""

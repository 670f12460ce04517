"""The model as flows see it: an interface, and its implementation on a local host.

Imports `models`, `config`, `base`, and of `model_host` only `protocol`.
"""

"""The model as flows see it: an interface, and its implementations on a local host and on other servers.

Imports `models`, `config`, `base`, and of `model_host` only `protocol`.
"""

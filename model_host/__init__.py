"""The child process that owns the model. It speaks :mod:`model_host.protocol` on stdin and stdout.

It imports nothing of `gateway`.
"""

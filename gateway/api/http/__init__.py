"""What every request passes: middleware, authentication, limits, the endpoint table, error envelopes.

Imports nothing of the dialects.
"""

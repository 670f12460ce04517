"""Middleware, authentication, limits, the endpoint table, error envelopes. Imports no dialect."""

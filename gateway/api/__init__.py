"""HTTP endpoints: one folder per API dialect or concern. The only unit that knows Starlette.

Imports the flows (`ask`, `memory`, `wiki`, `tasks`) and everything below them.
"""

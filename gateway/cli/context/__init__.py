"""`hearth context`: projects, and questions about their code. They need no running server.

Imports `common`, `code` and lower units.
"""

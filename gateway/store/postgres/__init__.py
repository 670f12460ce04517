"""The store on PostgreSQL: SQL of :mod:`gateway.store`, translated, over psycopg. Imports `store`."""

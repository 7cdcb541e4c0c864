"""Queries over profiles: SQL on DuckDB, read-only and without files or network.

In: profiles and a statement.
Out: a result of columns and rows.
"""

"""Formats that only other tools read: CSV, Parquet, JSON, pprof, speedscope, folded stacks.

In: a `Profile`.
Out: bytes.
"""

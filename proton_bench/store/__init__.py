"""The store of a fleet: profiles of many runs in Delta tables, queried by DuckDB.

In: files of any known format, to a folder or a URL such as ``s3://bucket/profiles``.
Out: call paths over time, ranks and revisions as Arrow tables, and single runs as a `Profile`.
"""

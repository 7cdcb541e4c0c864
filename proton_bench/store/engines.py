"""The libraries that a store is made of: Delta tables, Arrow and DuckDB.

Other modules of the room import them from here, so that a missing one is named in one line.
"""

from __future__ import annotations

from proton_bench.errors import MissingExtraError

try:
    import deltalake
    import deltalake.fs as deltalake_fs
    import duckdb
    import pyarrow
    import pyarrow.compute as pyarrow_compute
except ImportError as error:
    raise MissingExtraError(
        f"a store needs deltalake, duckdb and pyarrow, and one cannot be imported ({error}): "
        "pip install 'proton-bench[store]'"
    ) from error

__all__ = ["deltalake", "deltalake_fs", "duckdb", "pyarrow", "pyarrow_compute"]

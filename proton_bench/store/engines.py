"""The libraries that a store is made of: Delta tables, Arrow and DuckDB.

Other modules of the room import them from here, so that a missing one is named in one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

__all__ = ["deltalake", "deltalake_fs", "duckdb", "open_memory", "pyarrow", "pyarrow_compute"]


def open_memory(config: Mapping[str, Any] | None = None) -> duckdb.DuckDBPyConnection:
    """Open an empty DuckDB database, which shows no progress: a bar would stand in our output."""
    connection = duckdb.connect(":memory:", config=dict(config or {}))
    connection.execute("SET enable_progress_bar = false")
    return connection

"""The libraries that a store is made of: Delta tables, Arrow and DuckDB.

Other modules of the room import them from here, so that a missing one is named in one line.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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


@contextmanager
def open_memory(
    config: Mapping[str, Any] | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty DuckDB database, which shows no progress: a bar would stand in our output.

    Raises:
        KeyboardInterrupt: Ctrl-C ended a statement.
    """
    with duckdb.connect(":memory:", config=dict(config or {})) as connection:
        connection.execute("SET enable_progress_bar = false")
        with _interrupted_by_ctrl_c(connection):
            yield connection


@contextmanager
def _interrupted_by_ctrl_c(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """End statements at Ctrl-C, which DuckDB sees in few of its calls, and Python after them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals, written = os.pipe()
    os.set_blocking(written, False)
    others = signal.set_wakeup_fd(written, warn_on_full_buffer=False)

    def watch() -> None:
        while number := os.read(signals, 1):
            if number[0] == signal.SIGINT:
                connection.interrupt()
            if others >= 0:
                os.write(others, number)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except (duckdb.InterruptException, RuntimeError) as error:
        if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.set_wakeup_fd(others, warn_on_full_buffer=False)
        os.close(written)
        watcher.join()
        os.close(signals)

"""The libraries that a store is made of: Delta tables, Arrow and DuckDB.

Other modules of the room import them from here, so that a missing one is named in one line.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from proton_bench.errors import MissingExtraError

try:
    import deltalake
    import deltalake.fs as deltalake_fs
    import deltalake.transaction as deltalake_transaction
    import duckdb
    import pyarrow
    import pyarrow.compute as pyarrow_compute
    import pyarrow.parquet as pyarrow_parquet
except ImportError as error:
    raise MissingExtraError(
        f"a store needs deltalake, duckdb and pyarrow, and one cannot be imported ({error}): "
        "pip install deltalake duckdb pyarrow"
    ) from error

__all__ = [
    "awaited",
    "deltalake",
    "deltalake_fs",
    "deltalake_transaction",
    "duckdb",
    "open_memory",
    "pyarrow",
    "pyarrow_compute",
    "pyarrow_parquet",
    "started",
]

_T = TypeVar("_T")


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


def awaited(work: Callable[[], _T]) -> _T:
    """Return the result of deltalake's native code, which does not see Ctrl-C.

    Raises:
        KeyboardInterrupt: Ctrl-C ended the waiting; the work goes on as long as this process.
    """
    is_seen = threading.current_thread() is not threading.main_thread()
    return work() if is_seen else started(work).result()


def started(work: Callable[[], _T]) -> Future[_T]:
    """Begin some work in a thread of its own, which ends with this process at the latest."""
    result: Future[_T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is that of the caller
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result

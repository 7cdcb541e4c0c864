"""Upkeep takes turns.

deltalake lets two commands merge the same files at once, so that each row is there twice, and two
that sum the same profiles would count these twice.

The log of the table ``profiles`` says until when a process has the turn: as the version of an
application's transaction, of which two commits over one version of the table cannot both succeed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from proton_bench.errors import OutputError, ProfileFormatError
from proton_bench.store.engines import awaited, deltalake
from proton_bench.store.schema import PARTITIONS
from proton_bench.store.store import Store, refused

_TABLE, _NAME = "profiles", "upkeep"
# How long the turn of a command that was killed lasts, and how often that of a living one goes on:
# clocks may differ by some minutes.
_LASTS_S, _EVERY_S = 3600, 600
_MOST_RETRIES = 200
_LATEST = 253_402_300_799  # the last second that a date has


@contextmanager
def turn(store: Store) -> Iterator[None]:
    """Keep other processes from upkeep of a store until the block ends.

    Raises:
        OutputError: Another one has its turn, or the store cannot be written.
        UsageError: The store does not exist.
        ProfileFormatError: It is damaged.
    """
    table = store.table(_TABLE)
    until = table.transaction_version(_NAME) or 0
    if until > time.time():
        raise _taken(store, until)
    _commit(store, table, _LASTS_S)
    has_ended = threading.Event()
    keeper = threading.Thread(target=_keep, args=(store, has_ended), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        has_ended.set()
        keeper.join()
        with suppress(OutputError, ProfileFormatError):
            _commit(store, store.table(_TABLE), 0)


def _taken(store: Store, until: int) -> OutputError:
    last = datetime.fromtimestamp(min(until, _LATEST), UTC).strftime("%Y-%m-%d %H:%M")
    return OutputError(
        f"another command maintains {store.uri!a}: try again when it has ended; if it "
        f"was killed, after {last} UTC"
    )


def _keep(store: Store, has_ended: threading.Event) -> None:
    while not has_ended.wait(_EVERY_S):
        with suppress(OutputError, ProfileFormatError):
            _commit(store, store.table(_TABLE), _LASTS_S)


def _commit(store: Store, table: deltalake.DeltaTable, lasts_s: int) -> None:
    """Say that the turn lasts so long from now.

    Raises:
        OutputError: Another process has said so since the table was opened.
    """
    until = int(time.time()) + lasts_s

    def write() -> None:
        table.create_write_transaction(
            [],
            "append",
            table.schema(),
            PARTITIONS[_TABLE],
            commit_properties=deltalake.CommitProperties(
                max_commit_retries=_MOST_RETRIES,
                app_transactions=[deltalake.Transaction(_NAME, until)],
            ),
        )

    with refused(f"change the table {_TABLE} of {store.uri}"):
        try:
            awaited(write)
        except deltalake.exceptions.CommitFailedError as error:
            raise _taken(store, until) from error

"""Changes of stored rows, such as those of one day and job, while others write too."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

from proton_bench.store.engines import deltalake
from proton_bench.store.store import Store, quoted, refused, writer_properties

__all__ = ["Partition", "change", "delete"]

_MOST_TRIES = 20


class Partition(NamedTuple):
    """The rows of one day and job."""

    day: date
    job: str

    @property
    def condition(self) -> str:
        """The condition of these rows, as deltalake takes it."""
        return f"date = '{self.day}' AND job = {quoted(self.job)}"


def delete(store: Store, name: str, condition: str) -> int:
    """Delete the rows of a table that a condition holds for, and return their number.

    Raises:
        OutputError: The store cannot be written.
    """
    done: dict[str, Any] = change(
        store,
        name,
        lambda table: table.delete(condition, writer_properties=writer_properties(name)),
    )
    return int(done["num_deleted_rows"])


def change(store: Store, name: str, apply: Callable[[deltalake.DeltaTable], Any]) -> Any:
    """Change a table; if another writer changed the same files meanwhile, do it again.

    Args:
        store: The store.
        name: The table.
        apply: Changes the table, and returns what it did.

    Raises:
        OutputError: The store cannot be written.
    """
    with refused(f"change the table {name} of {store.uri}"):
        for _ in range(_MOST_TRIES):
            try:
                return apply(store.table(name))
            except deltalake.exceptions.CommitFailedError:
                continue
        return apply(store.table(name))

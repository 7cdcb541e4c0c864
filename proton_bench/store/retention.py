"""Retention: old profiles of a run become one sum, which keeps quantiles for ever.

::

    up to raw_days    recorded profiles, with a sketch of the calls of each row
    up to rank_days   recorded profiles with sums, and the sum of the run with sketches
    for ever          the sum of the run

Compaction makes most sums before that. Nothing is lost or counts twice if this is interrupted: the
next time goes on. Only one process does it at a time, and none compacts meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from proton_bench.store.policy import Policy
from proton_bench.store.store import Partition, Snapshot, Store, change, delete, is_among
from proton_bench.store.sums import sum_runs
from proton_bench.store.turn import turn

__all__ = ["Retained", "retain"]


@dataclass(slots=True)
class Retained:
    """What became of profiles.

    Attributes:
        summed: Profiles that are in new sums.
        stripped: Samples that lost their sketch.
        removed: Profiles that only their sum is left of.
    """

    summed: int = 0
    stripped: int = 0
    removed: int = 0


def retain(store: Store, policy: Policy, today: date) -> Retained:
    """Sum, strip and remove old profiles; `compact` then gives their space back.

    Args:
        store: The store.
        policy: How long what is kept.
        today: The day that ages are counted from, UTC.

    Raises:
        OutputError: Another process maintains the store, or it cannot be written.
        ProfileFormatError: The store is damaged.
    """
    done = Retained()
    if policy.rank_days is None:
        return done
    with turn(store):
        for partition in _partitions(store.snapshot(), today - timedelta(policy.raw_days)):
            done.summed += sum_runs(store, partition, least=1)
            snapshot = store.snapshot()
            done.stripped += _strip(store, partition, _asked(snapshot, partition, _SKETCHED))
            if partition.day < today - timedelta(policy.rank_days):
                done.removed += _remove(store, partition, _asked(snapshot, partition, _MEMBERS))
    return done


def _partitions(snapshot: Snapshot, before: date) -> list[Partition]:
    """Return the days before one, with their jobs, that have recorded profiles."""
    with snapshot.connect("all_profiles") as reader:
        found = reader.rows(
            "SELECT DISTINCT date, job FROM all_profiles WHERE members IS NULL AND date < ? "
            "ORDER BY ALL",
            [before],
        )
        return [Partition(*each) for each in found]


_RECORDED = (
    "SELECT date, job, profile_id, batch FROM all_profiles SEMI JOIN summed "
    "USING (date, job, profile_id) WHERE date = $day AND job = $job"
)
# Recorded profiles of a partition that are in a sum, and the batches of those with sketches.
_MEMBERS = f"SELECT profile_id FROM ({_RECORDED})"
_SKETCHED = (
    f"SELECT DISTINCT batch FROM stored_samples SEMI JOIN ({_RECORDED}) "
    "USING (date, job, profile_id, batch) WHERE sketch IS NOT NULL"
)


def _asked(snapshot: Snapshot, partition: Partition, query: str) -> list[str]:
    with snapshot.connect(query) as reader:
        return [text for (text,) in reader.rows(query, partition._asdict())]


def _strip(store: Store, partition: Partition, batches: Sequence[str]) -> int:
    """Remove the sketches of samples of these batches."""
    if not batches:
        return 0
    condition = f"{partition.condition} AND {is_among('batch', batches)} AND value IS NOT NULL"
    updated: dict[str, Any] = change(
        store, "samples", lambda table: table.update({"sketch": "NULL"}, predicate=condition)
    )
    return int(updated["num_updated_rows"])


def _remove(store: Store, partition: Partition, ids: Sequence[str]) -> int:
    """Remove profiles; their samples do not count then, and compaction removes them."""
    if not ids:
        return 0
    return delete(store, "profiles", f"{partition.condition} AND {is_among('profile_id', ids)}")

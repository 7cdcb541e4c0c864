"""Retention: old profiles of a run become one sum, which keeps quantiles for ever.

::

    up to raw_days    recorded profiles, with a sketch of the calls of each row
    up to rank_days   recorded profiles with sums, and the sum of the run with sketches
    for ever          the sum of the run

Compaction makes most sums before that. Nothing is lost or counts twice if this is interrupted: the
next time goes on. Only one process does it at a time, and none compacts meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec

from proton_bench.errors import OutputError, UsageError
from proton_bench.store.engines import deltalake_fs
from proton_bench.store.store import Partition, Snapshot, Store, change, delete, is_among
from proton_bench.store.sums import sum_runs
from proton_bench.store.turn import turn
from proton_bench.support.inputs import open_file

POLICY_FILE = "policy.toml"
_MOST_BYTES = 1 << 16
_MOST_DAYS = 36_500  # a century


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long what is kept, in days from the start of a run, and what is not stored.

    Attributes:
        rank_days: Recorded profiles, None for ever.
        raw_days: Sketches of recorded profiles, where these have an end.
        leave_out: Columns of ``profiles`` that stay empty; without ``source`` it is not known where
            timelines are either.
    """

    rank_days: int | None = None
    raw_days: int = 14
    leave_out: frozenset[
        Literal["attributes", "branch", "commit", "gpu_uuid", "host", "source"]
    ] = frozenset()

    def __post_init__(self) -> None:
        if self.rank_days is not None and not 0 <= self.raw_days <= self.rank_days <= _MOST_DAYS:
            raise UsageError(
                f"profiles cannot be kept {self.rank_days} days and their sketches "
                f"{self.raw_days}: both need 0 to {_MOST_DAYS} days, sketches at most as many"
            )


def read_policy(store: Store) -> Policy:
    """Return the policy of a store, the default one if it has no file.

    Raises:
        UsageError: The file is not a policy.
        OutputError: The store cannot be reached.
    """
    place = f"{store.uri}/{POLICY_FILE}"
    try:
        content = _content(store)
    except OSError as error:
        raise OutputError(f"the policy {place} cannot be read: {error}") from error
    if len(content) > _MOST_BYTES:
        raise UsageError(f"the policy {place} is larger than {_MOST_BYTES >> 10} KiB")
    try:
        return msgspec.toml.decode(content, type=Policy)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UsageError(f"the policy {place} is wrong: {str(error)[:300]}") from error


def _content(store: Store) -> bytes:
    """Return what the file says, nothing if there is none."""
    if not store.is_remote:
        place = Path(store.uri, POLICY_FILE)
        # A link to a missing file is there, and its policy is not the default one.
        if not os.path.lexists(place):
            return b""
        with open_file(place) as file:
            return file.read(_MOST_BYTES + 1)
    folder = deltalake_fs.DeltaStorageHandler(store.uri, dict(store.options) or None)
    try:
        with folder.open_input_file(POLICY_FILE) as remote:
            content: bytes = remote.read(_MOST_BYTES + 1)
            return content
    except FileNotFoundError:
        return b""


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

"""Stored profiles as `Profile`, for everything that reads one."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import msgspec

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.base import decoded
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import KIND_NAMES, FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.sketches import distribution_of
from proton_bench.store.stacks import StackTree
from proton_bench.store.store import Snapshot
from proton_bench.store.sums import sums_of
from proton_bench.store.workers import open_workers

__all__ = ["read_profiles", "read_runs"]

_PROFILES_AT_ONCE, _SAMPLES_AT_ONCE = 64, 4_000_000
_COUNT = "count"
# Job, run, and the profile if it is a run of its own.
_Key = tuple[str, str, str]
# Of what was sampled, in the order of the rows of the recorded profile.
_SAMPLES = (
    "SELECT s.* EXCLUDE (date, job, batch) REPLACE (CASE WHEN {quantiles} THEN sketch END AS "
    "sketch) FROM samples s SEMI JOIN chosen USING (date, job, profile_id) WHERE date IN (SELECT "
    "date FROM chosen) AND job IN (SELECT job FROM chosen) ORDER BY profile_id, node, sample_type, "
    "sample_unit"
)


def read_profiles(
    snapshot: Snapshot, rows: pa.Table, *, quantiles: bool = True
) -> Iterator[tuple[dict[str, Any], Profile]]:
    """Yield each of these profiles with its row, in their order.

    A restored profile has the rows that have values and those above them, in their order. It
    differs from the recorded one in this: integers are exact up to 2^53, vectors and unknown keys
    are missing, and distributions are sketches, with quantiles within 0.1 %.

    Args:
        snapshot: The store.
        rows: Rows of ``profiles``, as from `Snapshot.profiles`.
        quantiles: Whether they have the quantiles of their calls.

    Raises:
        ProfileFormatError: The store is damaged.
    """
    if not len(rows):
        return
    starts = range(0, len(rows), _PROFILES_AT_ONCE)
    with open_workers() as workers:
        read = partial(_read_some, snapshot, quantiles=quantiles)
        for found in workers.map(read, [rows.slice(at, _PROFILES_AT_ONCE) for at in starts]):
            yield from found


def _read_some(
    snapshot: Snapshot, rows: pa.Table, *, quantiles: bool
) -> list[tuple[dict[str, Any], Profile]]:
    """Return these profiles with their rows; all are in memory at once."""
    stacks = _stacks(snapshot)
    with snapshot.connect() as connection:
        connection.register("chosen", rows.select(["date", "job", "profile_id"]))
        found = connection.sql(_SAMPLES.format(quantiles=quantiles)).to_arrow_table()
    samples: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for sample in found.to_pylist():
        samples[sample["profile_id"]].append(sample)
    return [
        (row, _Restored(row, stacks).profile(samples[row["profile_id"]]))
        for row in rows.to_pylist()
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Stacks:
    """All stacks, and the row of each in their tree by its hash."""

    tree: StackTree
    rows: Mapping[int, int]


@lru_cache(maxsize=1)
def _stacks(snapshot: Snapshot) -> _Stacks:
    with snapshot.connect() as connection:
        tree = StackTree.of(connection.sql("FROM stacks").to_arrow_table())
    return _Stacks(tree, {hash: row for row, hash in enumerate(tree.hashes.tolist())})


def read_runs(
    snapshot: Snapshot, rows: pa.Table, *, quantiles: bool = True
) -> Iterator[tuple[dict[str, Any], Profile]]:
    """Yield each run with its row: the sum of the profiles of its ranks.

    Profiles without a rank are of processes that ran one after another, and each is a run.

    Args:
        snapshot: The store.
        rows: Rows of ``profiles``, as from `Snapshot.profiles`.
        quantiles: Whether the sums have the quantiles of their calls.

    Raises:
        ProfileFormatError: The store is damaged.
    """
    runs = [
        (row["job"], row["run"], row["profile_id"] if row["rank"] is None else "")
        for row in rows.select(["job", "run", "profile_id", "rank"]).to_pylist()
    ]
    counts = Counter(runs)
    is_alone = pa.array([counts[run] == 1 for run in runs], pa.bool_())
    yield from read_profiles(snapshot, rows.filter(is_alone), quantiles=quantiles)
    for some in _parts(runs, rows["samples"].to_pylist()):
        chosen = rows.take([place for run in some for place in some[run]])
        groups = [run for run in some for _ in some[run]]
        for row, samples in sums_of(snapshot, chosen, groups, quantiles=quantiles):
            yield row, _Restored(row, _stacks(snapshot)).profile(samples.to_pylist())


def _parts(runs: Sequence[_Key], samples: Sequence[int]) -> Iterator[dict[_Key, list[int]]]:
    """Yield places of the profiles of runs with several, for so many runs as fit into memory."""
    places: dict[_Key, list[int]] = defaultdict(list)
    for place, run in enumerate(runs):
        places[run].append(place)
    part: dict[_Key, list[int]] = {}
    size = 0
    for run, own in places.items():
        if len(own) == 1:
            continue
        part[run] = own
        size += sum(samples[place] for place in own)
        if size >= _SAMPLES_AT_ONCE:
            yield part
            part, size = {}, 0
    if part:
        yield part


class _Restored:
    """The tree of one profile, built from its samples.

    Args:
        row: The profile's row.
        stacks: All stacks.
    """

    def __init__(self, row: dict[str, Any], stacks: _Stacks) -> None:
        self._row = row
        self._tree = stacks.tree
        self._places = stacks.rows
        self._builder = ProfileBuilder()
        self._of_stack = {0: 0}
        self._integers = set(row["integer_metrics"])
        self._source = f"profile {row['profile_id']}"
        self._devices = self._converted(row["devices"], tuple[Device, ...])
        self._variants = self._converted(row["variants"], tuple[Variant, ...])

    def profile(self, samples: list[dict[str, Any]]) -> Profile:
        """Return the profile with these samples, which are in the order of its rows."""
        rows: dict[int, int] = {}
        for sample in samples:
            node = sample["node"]
            if node not in rows:
                rows[node] = self._node(sample)
            self._set(rows[node], sample)
        built = self._builder.build(
            provenance=decoded(lambda: json.loads(self._row["attributes"]), self._source),
            dropped=dict(self._row["dropped"]),
            partial=self._row["partial"],
        )
        uses = self._converted(json.loads(self._row["device_use"]), tuple[DeviceUse, ...])
        return replace(built, device_use=uses)

    def _node(self, sample: dict[str, Any]) -> int:
        """Add the row of a sample, and those above it that are missing; return its number."""
        stack = self._places.get(sample["stack_hash"])
        if stack is None:
            raise ProfileFormatError(
                f"the {self._source} has a stack that the store does not have: run `proton store "
                "check`"
            )
        if stack == 0:
            return 0
        missing = []
        above = int(self._tree.parents[stack])
        while above not in self._of_stack:
            missing.append(above)
            above = int(self._tree.parents[above])
        for each in reversed(missing):
            self._of_stack[each] = self._add(each)
        row = self._add(stack, sample["device"], sample["variant"])
        self._of_stack.setdefault(stack, row)
        return row

    def _add(self, stack: int, device: int | None = None, variant: int | None = None) -> int:
        return self._builder.add(
            self._of_stack[int(self._tree.parents[stack])],
            self._tree.strings[stack],
            FrameKind(KIND_NAMES.index(self._tree.kinds[stack])),
            device=None if device is None else self._devices[device],
            variant=None if variant is None else self._variants[variant],
        )

    def _set(self, row: int, sample: dict[str, Any]) -> None:
        metric, aggregation = _metric(sample), Aggregation(sample["aggregation"])
        self._builder.declare(metric, aggregation)
        value, calls = sample["value"], sample["count"]
        if sample["text"] is not None:
            value = sample["text"]
        elif metric in self._integers:
            value = int(value)
        self._builder.set(row, metric, value)
        if calls is not None and aggregation is Aggregation.INCLUSIVE:
            self._builder.set(row, _COUNT, calls)
        distribution = distribution_of(sample)
        if distribution is not None:
            self._builder.set_distribution(row, metric, distribution)

    def _converted(self, value: Any, kind: Any) -> Any:
        return decoded(lambda: msgspec.convert(value, kind), self._source)


def _metric(sample: dict[str, Any]) -> str:
    unit = sample["sample_unit"]
    return f"{sample['sample_type']} ({unit})" if unit else str(sample["sample_type"])

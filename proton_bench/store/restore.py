"""Stored profiles as `Profile`, for everything that reads one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import compress
from typing import Any

import msgspec

from proton_bench.errors import ProfileFormatError, ProtonError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import KIND_NAMES, FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.rows import StackTree
from proton_bench.store.sketches import distribution_of
from proton_bench.store.store import Partition, Snapshot
from proton_bench.store.sums import facts_of, sum_id, sums_of
from proton_bench.store.workers import open_workers

_PROFILES_AT_ONCE = 64
_COUNT = "count"
# Job, run, and the profile if it is a run of its own.
_Run = tuple[str, str, str]
_Tables = tuple[tuple[Device, ...], tuple[Variant, ...]]
# Workers restore on threads, and two that first use a type at once crash msgspec.
msgspec.json.Decoder(_Tables)
_decode_uses = msgspec.json.Decoder(tuple[DeviceUse, ...]).decode
# Of what was sampled, in the order of the rows of the recorded profile.
_SAMPLES = """
SELECT s.* EXCLUDE (date, job, batch, below)
    REPLACE (CASE WHEN {quantiles} THEN sketch END AS sketch)
FROM all_samples s SEMI JOIN chosen USING (date, job, profile_id, batch)
ORDER BY profile_id, node, sample_type, sample_unit"""
# Sums that compaction made of the same profiles.
_STORED = """
FROM all_profiles SEMI JOIN (
    SELECT unnest($jobs::TEXT[]) AS job, unnest($ids::TEXT[]) AS profile_id)
USING (job, profile_id) WHERE members IS NOT NULL"""


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
        # A slice would be sent with all that it is a slice of.
        places = (range(at, min(at + _PROFILES_AT_ONCE, len(rows))) for at in starts)
        for found in workers.map(read, (rows.take(pa.array(each)) for each in places)):
            yield from found


def _read_some(
    snapshot: Snapshot, rows: pa.Table, *, quantiles: bool
) -> list[tuple[dict[str, Any], Profile]]:
    """Return these profiles with their rows; all are in memory at once."""
    stacks = _stacks(snapshot)
    with snapshot.connect("all_samples", Partition.of_rows(rows)) as reader:
        reader.register("chosen", rows.select(["date", "job", "profile_id", "batch"]))
        found = reader.table(_SAMPLES.format(quantiles=quantiles))
    samples: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for sample in found.to_pylist():
        samples[sample["profile_id"]].append(sample)
    return [(row, _restored(row, samples[row["profile_id"]], stacks)) for row in rows.to_pylist()]


@dataclass(frozen=True, slots=True, eq=False)
class _Stacks:
    """All stacks, and the row of each in their tree by its hash."""

    tree: StackTree
    rows: Mapping[int, int]


@lru_cache(maxsize=1)
def _stacks(snapshot: Snapshot) -> _Stacks:
    with snapshot.connect("stacks") as reader:
        tree = StackTree.of(reader.table("FROM stacks"))
    return _Stacks(tree, {hash: row for row, hash in enumerate(tree.hashes.tolist())})


def run_keys(rows: pa.Table) -> list[_Run]:
    """Return what is the same for the rows of ``profiles`` that are of one run."""
    columns = (rows[name].to_pylist() for name in ("job", "run", "profile_id", "rank"))
    return [
        (job, run, id if rank is None else "") for job, run, id, rank in zip(*columns, strict=True)
    ]


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
    runs = run_keys(rows)
    ids: dict[_Run, list[str]] = defaultdict(list)
    for run, id in zip(runs, rows["profile_id"].to_pylist(), strict=True):
        ids[run].append(id)
    sums = {run: (run[0], sum_id(own)) for run, own in ids.items() if len(own) > 1}
    with snapshot.connect(_STORED) as reader:
        jobs, asked = ([key[place] for key in sums.values()] for place in (0, 1))
        stored = reader.table(_STORED, {"jobs": jobs, "ids": asked})
    known = set(zip(*(stored[name].to_pylist() for name in ("job", "profile_id")), strict=True))
    is_alone = pa.array([run not in sums for run in runs], pa.bool_())
    ready = pa.concat_tables([rows.filter(is_alone), stored.select(rows.column_names)])
    yield from read_profiles(snapshot, ready, quantiles=quantiles)
    is_missing = [run in sums and sums[run] not in known for run in runs]
    missing = rows.filter(pa.array(is_missing, pa.bool_()))
    for row, samples in sums_of(
        snapshot, missing, list(compress(runs, is_missing)), quantiles=quantiles
    ):
        yield row, _restored(row, samples.to_pylist(), _stacks(snapshot))


def _restored(row: dict[str, Any], samples: Iterable[dict[str, Any]], stacks: _Stacks) -> Profile:
    """Return the profile with this row and these samples, which are in the order of its rows.

    Raises:
        ProfileFormatError: They do not fit together.
    """
    try:
        return _Restored(row, stacks).profile(samples)
    except ProtonError:
        raise
    except (
        msgspec.MsgspecError,
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise ProfileFormatError(
            f"the profile {row['profile_id']} of the store is damaged ({str(error)[:300]}): run "
            "`proton store maintain`"
        ) from error


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
        # Stores of earlier versions do not have every fact.
        variants = [
            {name: value for name, value in each.items() if value is not None}
            | {"instructions": dict(each.get("instructions") or ())}
            for each in row["variants"]
        ]
        self._devices, self._variants = msgspec.convert((row["devices"], variants), _Tables)

    def profile(self, samples: Iterable[dict[str, Any]]) -> Profile:
        """Return the profile with these samples, which are in the order of its rows."""
        rows: dict[int, int] = {}
        for sample in samples:
            if sample["value"] is None and sample["text"] is None:
                continue  # it says what is below alone
            node = sample["node"]
            if node not in rows:
                rows[node] = self._node(sample)
            self._set(rows[node], sample)
        built = self._builder.build(
            provenance=facts_of(self._row),
            dropped=dict(self._row["dropped"]),
            partial=self._row["partial"],
        )
        return replace(built, device_use=_decode_uses(self._row["device_use"]))

    def _node(self, sample: dict[str, Any]) -> int:
        """Add the row of a sample, and those above it that are missing; return its number."""
        stack = self._places.get(sample["stack_hash"])
        if stack is None:
            raise ProfileFormatError(
                f"the profile {self._row['profile_id']} has a stack that the store does not have: "
                "run `proton store maintain`"
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


def _metric(sample: dict[str, Any]) -> str:
    unit = sample["sample_unit"]
    return f"{sample['sample_type']} ({unit})" if unit else str(sample["sample_type"])

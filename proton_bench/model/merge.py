"""Merges profiles: joins strings, devices, variants and columns, then sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from proton_bench.errors import MetricError, UsageError
from proton_bench.model.arrays import Array, Indexes, Mask
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import StringTable
from proton_bench.model.metrics.counter_columns import COUNTED_TIME, UNIT_ENDINGS
from proton_bench.model.metrics.device_use import DeviceUse, combine_uses
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import MetricColumn, ValueKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.model.regroup import Stack, group_equal_rows, regroup

_PARTS = "parts"
# Facts that distinguish processes; a merged profile has those of the first.
_OF_ONE_PROCESS = ("host", "pid", "worker", "rank", "local_rank")
_PART_FACTS = (*_OF_ONE_PROCESS, "start_time_ns", "end_time_ns", "recorded_ns")
_COMBINED: dict[str, Callable[[list[Any]], Any]] = {
    "start_time_ns": min,
    "end_time_ns": max,
    "estimated_cost_ns": sum,
}


def merge(profiles: Sequence[Profile]) -> Profile:
    """Return one profile with the rows of all; see `Profile.merge`."""
    if not profiles:
        raise UsageError("there is no profile to merge; name at least one")
    stack = _stacked(profiles)
    dropped: Counter[str] = Counter()
    for profile in profiles:
        dropped.update(profile.dropped)
    merged = regroup(stack, group_equal_rows(stack), profiles[0])
    return replace(
        merged,
        dropped=dict(dropped),
        device_use=_joined_uses(profiles),
        partial=any(profile.partial for profile in profiles),
        provenance=_joined_provenance(profiles),
    )


def _joined_uses(profiles: Sequence[Profile]) -> tuple[DeviceUse, ...]:
    """Sum the time of devices; a device used by several processes counts once for each."""
    known: dict[Device, int] = {}
    places = [_interned(profile.devices, known) for profile in profiles]
    return combine_uses(
        replace(use, device=int(own[use.device]))
        for profile, own in zip(profiles, places, strict=True)
        for use in profile.device_use
    )


def _joined_provenance(profiles: Sequence[Profile]) -> Provenance:
    """Return the facts of the first, further facts of others, and a list of all parts."""
    first = profiles[0].provenance
    if len(profiles) == 1:
        return first
    facts: dict[str, Any] = {}
    for profile in profiles:
        for key, value in profile.provenance.items():
            if key not in _OF_ONE_PROCESS or profile is profiles[0]:
                facts.setdefault(key, value)
    for key, combine in _COMBINED.items():
        found = [profile.provenance.get(key) for profile in profiles]
        numbers = [value for value in found if isinstance(value, int | float)]
        if numbers:
            facts[key] = combine(numbers)
    facts[_PARTS] = [part for profile in profiles for part in _parts(profile)]
    return Provenance(facts)


def _parts(profile: Profile) -> list[Any]:
    known = profile.provenance.get(_PARTS)
    if isinstance(known, tuple):
        return list(known)
    part = {key: profile.provenance[key] for key in _PART_FACTS if key in profile.provenance}
    return [{**part, "partial": True} if profile.partial else part]


def _stacked(profiles: Sequence[Profile]) -> Stack:
    table = StringTable()
    texts = [_places(profile.strings, table.index) for profile in profiles]
    devices: dict[Device, int] = {}
    variants: dict[Variant, int] = {}
    device_maps = [_interned(profile.devices, devices) for profile in profiles]
    variant_maps = [_interned(profile.variants, variants) for profile in profiles]
    starts = np.cumsum([0, *(len(profile) for profile in profiles)])
    parents = [
        np.where(profile.parents >= 0, profile.parents + start, -1)
        for profile, start in zip(profiles, starts.tolist(), strict=False)
    ]
    strings = table.texts()
    names = dict.fromkeys(name for profile in profiles for name in profile.columns)
    for name in _counted_apart(profiles):
        names.pop(name, None)
    return Stack(
        strings=strings,
        parents=_joined(parents),
        frames=_joined([t[p.frames] for p, t in zip(profiles, texts, strict=True)]),
        kinds=np.concatenate([profile.kinds for profile in profiles]),
        device_rows=_joined(
            [places[p.device_rows] for p, places in zip(profiles, device_maps, strict=True)]
        ),
        variant_rows=_joined(
            [places[p.variant_rows] for p, places in zip(profiles, variant_maps, strict=True)]
        ),
        devices=tuple(devices),
        variants=tuple(variants),
        columns=tuple(_stacked_column(name, profiles, texts, strings=strings) for name in names),
        distributions=_stacked_distributions(profiles, starts.tolist()),
    )


def _counted_apart(profiles: Sequence[Profile]) -> set[str]:
    """Return the columns of units that hardware counters told in some of the profiles only.

    Their time would be divided by the time for which all counters of all profiles stand.
    """
    counted = [
        {name for name in profile.columns if name.endswith(UNIT_ENDINGS)}
        for profile in profiles
        if COUNTED_TIME in profile.columns
    ]
    if not counted:
        return set()
    return counted[0].union(*counted) - counted[0].intersection(*counted)


def _places(texts: Iterable[str], index: Any) -> Indexes:
    # The last element answers position -1.
    return np.array([*(index(text) for text in texts), -1], dtype="<i4")


def _interned(entries: Sequence[Any], known: dict[Any, int]) -> Indexes:
    return np.array([*(known.setdefault(entry, len(known)) for entry in entries), -1], dtype="<i4")


def _joined(parts: Sequence[Array]) -> Indexes:
    return np.concatenate(parts).astype("<i4")


def _stacked_column(
    name: str,
    profiles: Sequence[Profile],
    texts: Sequence[Indexes],
    *,
    strings: tuple[str, ...],
) -> MetricColumn:
    found = [profile.columns.get(name) for profile in profiles]
    present = [column for column in found if column is not None]
    kind = _common_kind(name, present)
    values: list[Array] = [np.zeros(0, dtype=kind.dtype)]
    valid: list[Mask] = []
    lengths: list[Array] = [np.zeros(1, dtype=np.int64)]
    for profile, column, places in zip(profiles, found, texts, strict=True):
        rows = len(profile)
        if column is None:
            fill = 0 if kind.is_vector else rows
            values.append(np.full(fill, -1 if kind is ValueKind.STR else 0, dtype=kind.dtype))
            valid.append(np.zeros(rows, dtype=np.bool_))
            lengths.append(np.zeros(rows, dtype=np.int64))
            continue
        own = places[column.values] if kind is ValueKind.STR else column.values
        values.append(own.astype(kind.dtype))
        valid.append(column.valid)
        if column.offsets is not None:
            lengths.append(np.diff(column.offsets))
    return MetricColumn(
        present[0].spec,
        kind,
        np.concatenate(values),
        np.concatenate(valid),
        np.cumsum(np.concatenate(lengths)) if kind.is_vector else None,
        strings if kind is ValueKind.STR else (),
    )


def _common_kind(name: str, columns: Sequence[MetricColumn]) -> ValueKind:
    aggregations = {str(column.spec.aggregation) for column in columns}
    kinds = {column.kind for column in columns}
    if kinds == {ValueKind.INT, ValueKind.FLOAT}:
        kinds = {ValueKind.FLOAT}
    if kinds == {ValueKind.INT_VECTOR, ValueKind.FLOAT_VECTOR}:
        kinds = {ValueKind.FLOAT_VECTOR}
    if len(kinds) > 1:
        raise MetricError(f"metric {name!r} holds {' and '.join(sorted(kinds))} in the profiles")
    if len(aggregations) > 1:
        raise MetricError(
            f"metric {name!r} adds up as {' and '.join(sorted(aggregations))} in the profiles"
        )
    return kinds.pop()


def _stacked_distributions(
    profiles: Sequence[Profile], starts: Sequence[int]
) -> dict[str, list[tuple[int, Distribution]]]:
    stacked: dict[str, list[tuple[int, Distribution]]] = {}
    for profile, start in zip(profiles, starts, strict=False):
        for name, entries in profile.distributions.items():
            target = stacked.setdefault(name, [])
            target.extend((row + start, entry) for row, entry in entries)
    return stacked

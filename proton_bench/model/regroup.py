"""Sums rows of one tree, or of several stacked ones, into fewer rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.model import preorder
from proton_bench.model.arrays import Array, Indexes, Integers, Mask
from proton_bench.model.device import Device, Variant
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.metrics.wall_times import without_nested
from proton_bench.model.profile import Profile

# With fewer rows per level a loop over the rows is faster than array operations per level.
_ROWS_PER_LEVEL = 64


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Rows of one or several profiles one after the other; each tree's root has parent -1."""

    strings: tuple[str, ...]
    parents: Indexes
    frames: Indexes
    kinds: npt.NDArray[np.uint8]
    device_rows: Indexes
    variant_rows: Indexes
    devices: tuple[Device, ...]
    variants: tuple[Variant, ...]
    columns: tuple[MetricColumn, ...]
    distributions: Mapping[str, Iterable[tuple[int, Distribution]]]

    @classmethod
    def of(cls, profile: Profile) -> Stack:
        """Return the rows of one profile."""
        return cls(
            strings=profile.strings,
            parents=profile.parents,
            frames=profile.frames,
            kinds=profile.kinds,
            device_rows=profile.device_rows,
            variant_rows=profile.variant_rows,
            devices=profile.devices,
            variants=profile.variants,
            columns=tuple(profile.columns.values()),
            distributions=profile.distributions,
        )


def fold_variants(profile: Profile, *, but_signatures: bool = False) -> Profile:
    """Sum siblings equal in name, kind and device; the result has no variants.

    Args:
        profile: Profile to fold.
        but_signatures: Rows with other signatures stay apart, as variants of nothing else.
    """
    none = np.full(len(profile), -1, dtype="<i4")
    rows, variants = _signatures(profile) if but_signatures else (none, ())
    stack = replace(Stack.of(profile), variant_rows=rows, variants=variants)
    if _siblings_differ(stack):
        return replace(profile, variant_rows=rows, variants=variants)
    return regroup(stack, group_equal_rows(stack), profile)


def _signatures(profile: Profile) -> tuple[Indexes, tuple[Variant, ...]]:
    """Return the variants of rows with everything but their signatures left out."""
    kept: dict[str, int] = {}
    places = [
        kept.setdefault(each.signature, len(kept)) if each.signature else -1
        for each in profile.variants
    ]
    rows = np.array([*places, -1], dtype="<i4")[profile.variant_rows]
    return rows, tuple(Variant(signature=text) for text in kept)


def fold_below(profile: Profile, depth: int) -> Profile:
    """Sum rows deeper than ``depth`` (root 0) into their ancestor at that depth."""
    return fold_into_ancestors(profile, profile.depths() > depth)


def fold_into_ancestors(profile: Profile, rows: Mask) -> Profile:
    """Sum rows into the nearest row above them that stays.

    Args:
        profile: Profile to fold.
        rows: One flag per row; with a row go all rows below it, and the root stays.
    """
    if not bool(rows.any()):
        return profile
    # In pre-order, the last topmost row that goes is the one above all others that go.
    tops = np.where(rows & ~rows[profile.parents], np.arange(len(profile)), 0)
    ancestors = profile.parents[np.maximum.accumulate(tops)]
    numbers = np.cumsum(~rows) - 1
    groups = np.where(rows, numbers[ancestors], numbers)
    return regroup(Stack.of(profile), groups.astype("<i4"), profile)


def order_siblings(profile: Profile, keys: Integers) -> Profile:
    """Sort the rows below each parent by their keys, stably.

    Args:
        profile: Profile to sort.
        keys: One number per row.
    """
    rows = np.arange(len(profile))
    order = np.lexsort((rows, keys, profile.depths()))
    groups = np.empty(len(profile), dtype="<i4")
    groups[order] = rows
    return regroup(Stack.of(profile), groups, profile)


def group_equal_rows(stack: Stack) -> Indexes:
    """Number the paths in order of first appearance; all roots are one path."""
    return number_paths(stack.parents, row_labels(stack))


def number_paths(parents: Indexes, labels: Integers) -> Indexes:
    """Number paths of labels in order of first appearance; all roots are one path.

    Args:
        parents: Parents of the rows of one tree or of several stacked ones, -1 for a root.
        labels: Label of a row among its siblings, 0 or more.
    """
    count = int(labels.max()) + 1
    depths = preorder.depths(parents)
    is_flat = (int(depths.max()) + 1) * _ROWS_PER_LEVEL <= len(depths)
    if is_flat and len(labels) * count < 2**62:
        return _number_by_level(parents, labels, depths)
    known: dict[int, int] = {}
    groups: list[int] = []
    for parent, label in zip(parents.tolist(), labels.tolist(), strict=True):
        path = groups[parent] * count + label if parent >= 0 else -1
        groups.append(known.setdefault(path, len(known)))
    return np.array(groups, dtype="<i4")


def _number_by_level(parents: Indexes, labels: Integers, depths: Indexes) -> Indexes:
    """Number paths level by level, like a loop over the rows; meanwhile a path is its first row."""
    count = int(labels.max()) + 1
    first = np.zeros(len(parents), dtype=np.int64)
    order = np.argsort(depths, kind="stable")
    ends = np.cumsum(np.bincount(depths))
    first[order[: ends[0]]] = order[0]
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        rows = order[begin:end]
        paths = first[parents[rows]] * count + labels[rows]
        _, places, paths_of_rows = np.unique(paths, return_index=True, return_inverse=True)
        first[rows] = rows[places][paths_of_rows]
    is_first = first == np.arange(len(first))
    numbers = np.cumsum(is_first) - 1
    return numbers[first].astype("<i4")


def row_labels(stack: Stack) -> Integers:
    """Return one number for name, kind, device and variant of each row."""
    labels = stack.frames.astype(np.int64)
    for part, size in (
        (stack.kinds, 256),
        (stack.device_rows + 1, len(stack.devices) + 1),
        (stack.variant_rows + 1, len(stack.variants) + 1),
    ):
        if int(labels.max()) >= 2**62 // size:
            labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        labels = labels * size + part
    return labels


def _siblings_differ(stack: Stack) -> bool:
    labels = row_labels(stack)
    count = int(labels.max()) + 1
    if len(labels) * count >= 2**62:
        return False
    paths = (stack.parents.astype(np.int64) + 1) * count + labels
    paths.sort()
    return bool((paths[1:] != paths[:-1]).all())


def regroup(stack: Stack, groups: Indexes, origin: Profile) -> Profile:
    """Sum rows of equal group; everything except rows and values comes from ``origin``.

    Its steady steps do not: they have the rows as they were recorded.

    Args:
        stack: Rows to sum.
        groups: Group of each row, numbered in order of first appearance.
        origin: Profile whose provenance and other facts the result keeps.
    """
    _, heads = np.unique(groups, return_index=True)
    above = stack.parents[heads]
    parents = np.where(above >= 0, groups[above], -1).astype("<i4")
    places = preorder.positions(parents)
    order = np.argsort(places)
    heads, parents = heads[order], parents[order]
    target = places[groups]
    return replace(
        origin,
        strings=stack.strings,
        parents=np.where(parents >= 0, places[parents], -1).astype("<i4"),
        frames=stack.frames[heads],
        kinds=stack.kinds[heads],
        device_rows=stack.device_rows[heads],
        variant_rows=stack.variant_rows[heads],
        devices=stack.devices,
        variants=stack.variants,
        columns={
            each.spec.name: sum_column(
                without_nested(each, stack.parents, groups), target, len(heads)
            )
            for each in stack.columns
        },
        distributions={
            name: _merged(entries, target) for name, entries in stack.distributions.items()
        },
        steady=b"",
    )


def _merged(entries: Iterable[tuple[int, Distribution]], target: Indexes) -> DistributionTable:
    merged: dict[int, Distribution] = {}
    for row, entry in entries:
        place = int(target[row])
        merged[place] = merged[place].merge(entry) if place in merged else entry
    return DistributionTable.from_mapping(merged)


def sum_column(column: MetricColumn, target: Indexes, total: int) -> MetricColumn:
    """Return a column of ``total`` rows, each the sum of the rows with that ``target``.

    For properties the last one counts; a row without sources has no value.
    """
    valid = np.zeros(total, dtype=np.bool_)
    valid[target[column.valid]] = True
    if column.kind.is_vector:
        return _summed_vectors(column, target, valid)
    values = np.full(total, -1 if column.kind is ValueKind.STR else 0, dtype=column.kind.dtype)
    if column.kind is ValueKind.STR or column.spec.aggregation is Aggregation.PROPERTY:
        values[target[column.valid]] = column.values[column.valid]
        return replace(column, values=values, valid=valid)
    if column.kind is ValueKind.FLOAT:
        sums = np.bincount(target, weights=column.values, minlength=total).astype("<f8", copy=False)
        return replace(column, values=sums, valid=valid)
    weights = np.bincount(target, weights=column.values, minlength=total)
    if bool((np.abs(weights) >= 2.0**63).any()):
        return replace(column, kind=ValueKind.FLOAT, values=weights, valid=valid)
    np.add.at(values, target, column.values)
    return replace(column, values=values, valid=valid)


def _summed_vectors(column: MetricColumn, target: Indexes, valid: Mask) -> MetricColumn:
    cells: dict[int, Array] = {}
    offsets = column.offsets if column.offsets is not None else np.zeros(1, dtype=np.int64)
    for row in np.flatnonzero(column.valid).tolist():
        place, value = int(target[row]), column.values[offsets[row] : offsets[row + 1]]
        before = cells.get(place)
        if before is None or column.spec.aggregation is Aggregation.PROPERTY:
            cells[place] = value
        else:
            cells[place] = _padded_sum(before, value)
    lengths = np.zeros(len(valid) + 1, dtype=np.int64)
    for place, value in cells.items():
        lengths[place + 1] = len(value)
    empty = np.zeros(0, dtype=column.kind.dtype)
    values = np.concatenate([empty, *(cells[place] for place in sorted(cells))])
    return replace(column, values=values, valid=valid, offsets=np.cumsum(lengths))


def _padded_sum(left: Array, right: Array) -> Array:
    """Add by element; elements of only one vector are kept."""
    total = np.zeros(max(len(left), len(right)), dtype=left.dtype)
    total[: len(left)] = left
    with np.errstate(over="ignore", invalid="ignore"):
        total[: len(right)] += right
    return total

"""One tree minus another, for ``proton-viewer --diff-profile``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.derive import MetricValues
from proton_bench.analysis.view.align import LabelledTree, align
from proton_bench.analysis.view.select import MetricTree
from proton_bench.errors import UsageError
from proton_bench.model.frame import StringTable

__all__ = ["subtract"]

Rows = npt.NDArray[np.int32]


def subtract(left: MetricTree, right: MetricTree) -> MetricTree:
    """Return left minus right; a row that one side lacks counts as 0, so nothing is lost.

    Rows pair by call path and device; of several siblings with one name the first pairs with the
    first, and so on.

    Raises:
        UsageError: The trees show different metrics.
    """
    names = [[metric.name for metric in tree.metrics] for tree in (left, right)]
    if names[0] != names[1]:
        raise UsageError(f"cannot subtract {', '.join(names[1])} from {', '.join(names[0])}")
    known: dict[tuple[str, str], int] = {}
    union = align([_labelled(tree, known) for tree in (left, right)])
    sides = [_sources(places, len(union.parents)) for places in union.places]
    table = StringTable()
    frames, kinds, devices = [], [], []
    for first, second in zip(sides[0].tolist(), sides[1].tolist(), strict=True):
        tree, row = (left, first) if first >= 0 else (right, second)
        frames.append(table.index(tree.name(row)))
        kinds.append(tree.kinds[row])
        devices.append(tree.devices[row])
    return MetricTree(
        strings=table.texts(),
        parents=union.parents,
        frames=np.array(frames, dtype="<i4"),
        kinds=np.array(kinds, dtype="u1"),
        devices=tuple(devices),
        metrics=tuple(
            _difference(one, other, sides)
            for one, other in zip(left.metrics, right.metrics, strict=True)
        ),
        cut=left.cut + right.cut,
    )


def _labelled(tree: MetricTree, known: dict[tuple[str, str], int]) -> LabelledTree:
    texts = [tree.strings[frame] for frame in tree.frames.tolist()]
    pairs = zip(texts, tree.devices, strict=True)
    labels = [known.setdefault(pair, len(known)) for pair in pairs]
    return LabelledTree(tree.parents, np.array(labels, dtype=np.int64))


def _sources(places: Rows, total: int) -> Rows:
    """Return for each row of the union its row in the tree, -1 for none."""
    found = np.full(total, -1, dtype="<i4")
    found[places] = np.arange(len(places))
    return found


def _difference(left: MetricValues, right: MetricValues, sides: list[Rows]) -> MetricValues:
    if not (left.is_number and right.is_number):
        raise UsageError(f"metric {left.name!r} is not a number, so it has no difference")
    one, one_valid = _spread(left, sides[0])
    other, other_valid = _spread(right, sides[1])
    return MetricValues(left.name, left.aggregation, one - other, one_valid | other_valid)


def _spread(
    metric: MetricValues, rows: Rows
) -> tuple[npt.NDArray[np.float64] | npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    valid = (rows >= 0) & metric.valid[rows]
    values = np.where(valid, metric.values[rows], 0)
    return values, valid

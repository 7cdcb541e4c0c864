"""A comparison to show: with readable texts instead of names, and without repetitions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.ranking import least_change
from proton_bench.analysis.naming.layers import equal_layers
from proton_bench.analysis.naming.readable import Readable, texts_of
from proton_bench.analysis.run import Run
from proton_bench.model.frame import FrameKind

# Layers did not change alike if so few of them have so much of what they changed.
_FEW, _MOST = 1 / 3, 0.8
# Part of the total that layers change by when nothing is different, and so grow or shrink; rates
# and averages of small layers vary as much as those of large ones.
_NOISE = 0.01


def with_equal_layers_folded(comparison: Comparison, options: CompareOptions) -> Comparison:
    """Return the comparison with equal layers in one row, or as it is if they did not change alike.

    Then it matters which of them changed.

    Args:
        comparison: What to fold; by path.
        options: How it was compared.
    """
    groups = list(_groups(comparison))
    if not groups or not all(_changed_alike(comparison, rows) for rows in groups):
        return comparison
    names = {comparison.tree.name(row) for rows in groups for row in rows}
    if any(_other_rows(run, names) for run in (*comparison.base, *comparison.new)):
        return comparison
    return compare(comparison.base, comparison.new, replace(options, fold_layers=True))


def _other_rows(run: Run, names: set[str]) -> bool:
    """Return whether rows of a run have names of layers but are none, as in formats without kinds.

    They would not be folded.
    """
    profile = run.profile
    frames = np.unique(profile.frames[profile.kinds != FrameKind.LAYER]).tolist()
    return any(profile.strings[frame] in names for frame in frames)


def _groups(comparison: Comparison) -> Iterator[list[int]]:
    """Yield the rows of layers that are equal but for their number."""
    tree = comparison.tree
    siblings: dict[int, list[int]] = {}
    for row in np.flatnonzero(tree.kinds == FrameKind.LAYER).tolist():
        siblings.setdefault(int(tree.parents[row]), []).append(row)
    for rows in siblings.values():
        for places in equal_layers([tree.name(row) for row in rows]):
            yield [rows[place] for place in places]


def _changed_alike(comparison: Comparison, rows: list[int]) -> bool:
    states, changes = comparison.tree.states[rows], comparison.inclusive.change[rows]
    if (states != states[0]).any():
        return False
    sizes = np.sort(np.abs(changes))[::-1]
    noise = least_change(comparison, _NOISE)
    if sizes.sum() < (least_change(comparison) if comparison.measure.is_additive else noise):
        return True
    large = changes[np.abs(changes) >= noise]
    if (large > 0).any() and (large < 0).any():  # they would cancel
        return False
    return bool(sizes[: math.ceil(_FEW * len(rows))].sum() < _MOST * sizes.sum())


def with_texts(comparison: Comparison, readable: Readable) -> Comparison:
    """Return the comparison with texts that differ for all kernels of both sides.

    Rows were matched by their recorded names before, and lines of kernels keep theirs. Folding is
    not done here.
    """
    tree = comparison.tree
    no_line = tree.kinds != FrameKind.LINE
    rows = [
        (side.frames[no_line & side.present], tree.kinds[no_line & side.present])
        for side in (tree.base, tree.new)
    ]
    texts = texts_of(tree.strings, rows, readable, provenance=comparison.new[0].profile.provenance)
    names = dict(zip(tree.strings, texts, strict=True))
    shown = replace(tree, strings=texts, recorded=tree.strings, origins=tree.origins.renamed(names))
    return replace(comparison, tree=shown)

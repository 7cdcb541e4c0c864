"""The hottest call paths of a profile, one line each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.derive import default_metrics
from proton_bench.analysis.naming.frame_names import Places
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.view.select import MetricTree, Selection, build_tree
from proton_bench.analysis.why.verdict import WHY, has_counters
from proton_bench.model.frame import TEST_RUN_NAME, FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.report.words.edge import fitting_path
from proton_bench.support.text import visible
from proton_bench.support.units import number_texts

__all__ = ["hottest_paths"]

_MAX_NAME = 200
_NOTHING = "no operator, kernel or copy was recorded"


def hottest_paths(profile: Profile, limit: int = 10, width: int | None = None) -> list[str]:
    """Return the call paths with the most time of their own, rows below them not counted.

    Library frames count for the frame that called them.

    Args:
        profile: A profile; its first default metric decides.
        limit: Paths at most.
        width: Characters of a line; frames in the middle of a path are left out to fit. None means
            any number.

    Returns:
        A heading and one line per path: share of the whole, value, calls, what limits it if
        counters were recorded, path. A sentence if nothing was recorded.
    """
    metrics = default_metrics(profile)
    if not metrics:
        return [_NOTHING]
    selection = Selection(depth=len(profile) + 1, readable=Readable())
    counted = ("count",) if "count" in metrics else ()
    limits = (WHY,) if has_counters(profile) else ()
    tree = build_tree(profile, (metrics[0], *counted, *limits), selection)
    own = _of_own_code(tree, _own_values(tree), Places.of(profile.provenance))
    total = float(own.sum())
    if not total > 0:
        return [_NOTHING]
    hottest = [row for row in np.argsort(-own, kind="stable")[:limit].tolist() if own[row] > 0]
    columns = [
        ["share", *(f"{own[row] / total:.1%}" for row in hottest)],
        [visible(tree.metrics[0].name), *number_texts(own[hottest].tolist())],
    ]
    if counted:
        calls = tree.metrics[1].take(np.array(hottest)).to_list()
        columns.append(["calls", *number_texts(calls)])
    if limits:
        said = tree.metrics[-1].take(np.array(hottest)).to_list()
        columns.append(["limit", *(visible(text or "-") for text in said)])
    wides = [max(map(len, column)) for column in columns]
    starts = [
        "".join(f"{text:>{wide}}  " for text, wide in zip(texts, wides, strict=True))
        for texts in zip(*columns, strict=True)
    ]
    room = None if width is None else width - len(starts[0])
    paths = (_path_text(tree, row, room) for row in hottest)
    return [f"{starts[0]}path", *map("".join, zip(starts[1:], paths, strict=True))]


def _own_values(tree: MetricTree) -> npt.NDArray[np.float64]:
    """Return the values of the rows alone."""
    metric = tree.metrics[0]
    values = np.where(metric.valid, metric.values, 0).astype(np.float64)
    if metric.aggregation is not Aggregation.INCLUSIVE:
        return values
    below = np.bincount(tree.parents[1:], weights=values[1:], minlength=len(tree))
    # What is smaller is a rounding error.
    return np.where(values - below > 1e-9 * np.abs(values), values - below, 0.0)


def _of_own_code(
    tree: MetricTree, own: npt.NDArray[np.float64], places: Places
) -> npt.NDArray[np.float64]:
    """Return the values with those of library frames at the frame of own code that called them.

    What a library does on behalf of one line is scattered over many frames of it.
    """
    flags = [bool(places.library_of(name)) for name in tree.recorded]
    is_library = np.array(flags, dtype=np.bool_)[tree.frames] & (tree.kinds == FrameKind.PYTHON)
    moved = own.copy()
    for row in np.flatnonzero(is_library)[::-1].tolist():  # rows below come first
        moved[tree.parents[row]] += moved[row]
        moved[row] = 0.0
    return moved


def _names(tree: MetricTree, row: int) -> Iterator[str]:
    """Yield the names of a path from its end, without the root."""
    while row > 0:
        name = tree.name(row)
        above = int(tree.parents[row])
        is_test_run = tree.kinds[row] == FrameKind.TEST and name == TEST_RUN_NAME
        if above > 0 or not is_test_run:  # all tests are below it
            yield visible(name, _MAX_NAME)
        row = above


def _path_text(tree: MetricTree, row: int, room: int | None) -> str:
    names = [*_names(tree, row)][::-1] or [tree.name(0)]
    return " › ".join(names) if room is None else fitting_path(names, room)

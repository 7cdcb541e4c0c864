"""Device work of a timeline: below the row of its launch, with times, counts and latencies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from proton_bench.formats.base import corrupt
from proton_bench.formats.path_tree import BYTES, COUNT, TIME
from proton_bench.formats.timeline.device_time import UNCALLED, DeviceWork, is_waiting_kernel
from proton_bench.formats.timeline.ranges import FAR_NS, MAX_NS, UNTIMED, Timeline
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation

__all__ = ["AMBIGUOUS", "UNMATCHED", "WAITING", "place_work"]

UNMATCHED = "device work whose launch is not in the file: kept under ROOT"
AMBIGUOUS = "device work whose id several launches share: kept under ROOT"

LATENCY_SUM = "launch_latency_sum (ns)"
LATENCY_COUNT = "launch_latency_count"
WAITING = "waiting_kernel"

_NONE, _SEVERAL = -1, -2
_EARLY_NS = 10**9
_LAUNCHED = (FrameKind.KERNEL, FrameKind.GRAPH)

Rows = npt.NDArray[np.int64]


def place_work(
    timeline: Timeline, launch_rows: Rows, *, path_rows: Rows | None = None
) -> DeviceWork:
    """Add the rows of device work below the rows of their launches, and return when it ran.

    Args:
        timeline: What to place, its ranges placed already.
        launch_rows: The row of each launch.
        path_rows: The row of each call path, where the file names those that work stands below.
    """
    work = timeline.work
    launch = _launch_of(timeline, launch_rows)
    kept = _fits_launch(timeline, launch)
    timeline.reading.drop(UNTIMED, int((~kept).sum()))
    timeline.keep_work(kept)
    launch, known = launch[kept], launch[kept] >= 0
    if path_rows is None:
        parents = np.zeros(len(work), dtype=np.int64)
        parents[known] = launch_rows[launch[known]]
        placed = _place_by_range(timeline, parents)
        timeline.reading.drop(UNMATCHED, int(((launch == _NONE) & ~placed).sum()))
        timeline.reading.drop(AMBIGUOUS, int((launch == _SEVERAL).sum()))
    else:
        parents = path_rows[timeline.paths["path"]]
    called = np.full(len(work), UNCALLED, dtype=np.int64)
    called[known] = timeline.launches["start"][launch[known]]
    is_timed = _first_kernels(timeline, launch)
    latency = np.where(is_timed, work["start"] - called, 0)
    agrees = is_timed & (latency >= 0) & (latency <= FAR_NS)
    _add_sums(timeline, parents, latency=np.where(agrees, latency, 0), is_timed=agrees)
    names = np.array(timeline.tree.top_names(), dtype=np.int64)
    return DeviceWork(
        device=work["device"].astype(np.int64),
        # Work right below the root is in no scope.
        scope=names[parents],
        start=work["start"],
        end=work["start"] + work["duration"],
        called=called,
        is_timed=is_timed,
        is_waiting=_waiting_names(timeline)[work["name"]] & (work["kind"] == FrameKind.KERNEL),
    )


def _fits_launch(timeline: Timeline, launch: Rows) -> npt.NDArray[np.bool_]:
    """Return which work may have begun when it says: about when its launch was, or the others' are.

    Clocks of hosts and devices may differ by more, but then for all work alike.
    """
    start, called = timeline.work["start"], timeline.launches["start"]
    known = np.flatnonzero(launch >= 0)
    later_ns = start[known] - called[launch[known]]
    found = np.ones(len(launch), dtype=np.bool_)
    if len(known):
        usual_ns = int(np.median(later_ns))
        is_late = later_ns > max(0, usual_ns) + FAR_NS
        found[known] = ~is_late & (later_ns >= min(0, usual_ns) - _EARLY_NS)
    host = np.concatenate([timeline.ranges["start"], called])
    if len(host):
        is_early = (launch < 0) & (start + timeline.work["duration"] < host.min() - FAR_NS)
        found &= ~is_early | (2 * is_early.sum() > len(launch))
    return found


def _place_by_range(timeline: Timeline, parents: Rows) -> npt.NDArray[np.bool_]:
    """Give work without a correlation id the row of the range that it names, if that is one row."""
    found = np.zeros(len(parents), dtype=np.bool_)
    orphans, named = timeline.orphans, timeline.range_ids
    if not (len(orphans) and len(named)):
        return found
    order = np.argsort(named["id"], kind="stable")
    ids, heads = np.unique(named["id"][order], return_index=True)
    rows = timeline.range_rows[named["range"][order]]
    lowest, highest = (pick.reduceat(rows, heads) for pick in (np.minimum, np.maximum))
    place = np.minimum(np.searchsorted(ids, orphans["id"]), len(ids) - 1)
    fits = (ids[place] == orphans["id"]) & (lowest == highest)[place]
    parents[orphans["work"][fits]] = lowest[place][fits]
    found[orphans["work"][fits]] = True
    return found


def _first_kernels(timeline: Timeline, launch: Rows) -> npt.NDArray[np.bool_]:
    """Mark the first kernel of each launch: a graph launches many, and has one latency."""
    work = timeline.work
    places = np.flatnonzero((launch >= 0) & np.isin(work["kind"], _LAUNCHED))
    ordered = places[np.lexsort((work["start"][places], launch[places]))]
    found = np.zeros(len(work), dtype=np.bool_)
    _, first = np.unique(launch[ordered], return_index=True)
    found[ordered[first]] = True
    return found


def _waiting_names(timeline: Timeline) -> npt.NDArray[np.bool_]:
    texts = timeline.tree.strings.texts()
    return np.array([is_waiting_kernel(text) for text in texts], dtype=np.bool_)


def _add_sums(
    timeline: Timeline, parents: Rows, *, latency: Rows, is_timed: npt.NDArray[np.bool_]
) -> None:
    """Add work of equal path, device and variant as one, in order of first appearance."""
    tree, work = timeline.tree, timeline.work
    keys = (*(work[name] for name in ("variant", "device", "kind", "name")), parents)
    order = np.lexsort(keys)
    heads = _heads(tuple(key[order] for key in keys))
    moved = np.full(len(order), -1, dtype=np.int64)
    moved[timeline.moved["work"]] = timeline.moved["bytes"]
    # Values, and whether they are known; a row without a known value has no value.
    values = {
        TIME: (work["duration"], None),
        COUNT: (np.ones(len(order), dtype=np.int64), None),
        LATENCY_SUM: (latency, is_timed),
        LATENCY_COUNT: (is_timed.astype(np.int64), is_timed),
        BYTES: (np.maximum(moved, 0), moved >= 0),
    }
    sums = {name: _sums(timeline, each[order], heads) for name, (each, _) in values.items()}
    known = {
        name: np.logical_or.reduceat(valid[order], heads).tolist()
        for name, (_, valid) in values.items()
        if valid is not None and len(heads)
    }
    waits = _waiting_names(timeline)
    tree.declare(WAITING, Aggregation.PROPERTY)
    firsts = order[heads]  # the sort is stable, so each head came first
    for group in np.argsort(firsts).tolist():
        cells = (int(key[firsts[group]]) for key in keys)
        variant, device, kind, name, parent = cells
        row = tree.row(parent, name, kind, device=device, variant=variant)
        for metric, column in sums.items():
            if metric not in known or known[metric][group]:
                tree.add(row, metric, column[group])
        if kind == FrameKind.KERNEL and waits[name]:
            tree.put(row, WAITING, 1)


def _heads(keys: tuple[Rows, ...]) -> Rows:
    """Return where a new group begins among sorted keys."""
    differs = np.zeros(len(keys[0]), dtype=np.bool_)
    differs[:1] = True
    for key in keys:
        differs[1:] |= key[1:] != key[:-1]
    found: Rows = np.flatnonzero(differs)
    return found


def _sums(timeline: Timeline, values: Rows, heads: Rows) -> list[int]:
    if not len(heads):
        return []
    if float(values.sum(dtype=np.float64)) >= MAX_NS:
        raise corrupt(timeline.reading.source, "its times add up to more than 64 bits hold")
    found: list[int] = np.add.reduceat(values, heads).tolist()
    return found


def _launch_of(timeline: Timeline, launch_rows: Rows) -> Rows:
    """Return for each piece of work its launch, `_NONE`, or `_SEVERAL` if they differ in path."""
    launches, work = timeline.launches, timeline.work
    split = len(launches)
    ids = np.concatenate([launches["correlation"], work["correlation"]])
    processes = np.concatenate([launches["process"], work["process"]])
    _, numbers = np.unique(ids, return_inverse=True)
    keys = processes.astype(np.int64) * (len(ids) + 1) + numbers
    order = np.argsort(keys[:split], kind="stable")
    sorted_keys = keys[:split][order]
    heads = np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]])[:split])
    found = np.full(len(work), _NONE, dtype=np.int64)
    if not split:
        return found
    rows = launch_rows[order]
    is_clear = np.minimum.reduceat(rows, heads) == np.maximum.reduceat(rows, heads)
    place = np.minimum(np.searchsorted(sorted_keys[heads], keys[split:]), len(heads) - 1)
    matches = (sorted_keys[heads][place] == keys[split:]) & (work["correlation"] >= 0)
    found[matches] = np.where(is_clear[place], order[heads[place]], _SEVERAL)[matches]
    return found

"""Device work of a timeline: below the row of its launch, with times, counts and latencies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from proton_bench.formats.base import corrupt
from proton_bench.formats.path_tree import BYTES, COUNT, TIME
from proton_bench.formats.timeline.ranges import FAR_NS, MAX_NS, UNTIMED, Timeline
from proton_bench.model.arrays import Array, Integers, Mask
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import LONG_IDLE_NS, DeviceUse, latency_bucket
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

# The time of a launch that is not known.
UNCALLED = -(2**63)
_MOST_SCOPES = 4096
_MOST = 2**63 - 1
_FAR_NS = 2**61  # differences and sums of times below this fit 64 bits
# NCCL's kernels also take time while they wait for the other devices.
_WAITING = re.compile(r"(_Z\d+)?nccl(Dev)?Kernel")


def is_waiting_kernel(name: str) -> bool:
    """Return whether a kernel mostly waits for other devices."""
    return _WAITING.match(name) is not None


@dataclass(frozen=True, slots=True, eq=False)
class DeviceWork:
    """Everything that ran on devices, one element each.

    Attributes:
        device: Number of the device, -1 for unknown.
        scope: Number of the top-level scope, -1 for none.
        start: Start in ns.
        end: End in ns.
        called: Time of the launch call in ns, `UNCALLED` where it is not known.
        is_timed: Whether the time from call to start is a launch latency: it is for the first
            kernel of a launch.
        is_waiting: Whether it mostly waits for other devices.
    """

    device: Integers
    scope: Integers
    start: Integers
    end: Integers
    called: Integers
    is_timed: Mask
    is_waiting: Mask

    def take(self, places: Array | slice) -> DeviceWork:
        """Return these elements, in this order."""
        names = ("device", "scope", "start", "end", "called", "is_timed", "is_waiting")
        return DeviceWork(*(getattr(self, name)[places] for name in names))

    @property
    def latencies(self) -> Integers:
        """Launch latencies in ns, negative where the clocks disagree."""
        found: Integers = (self.start - self.called)[self.is_timed]
        return found


def device_uses(work: DeviceWork, scopes: Sequence[str]) -> Iterator[DeviceUse]:
    """Yield the use of each known device, as a whole and then for each top-level scope.

    Args:
        work: What ran.
        scopes: Name of each scope number. Only the first 4096 of a device count as scopes.
    """
    near = (work.start >= -_FAR_NS) & (work.end <= _FAR_NS) & (work.device >= 0)
    work = work.take(np.flatnonzero(near))
    is_called = (work.called >= -_FAR_NS) & (work.called <= _FAR_NS)
    called = np.where(is_called, work.called, UNCALLED)
    work = replace(work, called=called, is_timed=work.is_timed & is_called)
    ordered = work.take(np.lexsort((-work.end, work.start, work.device)))
    first = np.flatnonzero(np.diff(ordered.device, prepend=-1))
    for start, stop in pairwise([*first.tolist(), len(ordered.device)]):
        part = ordered.take(slice(start, stop))
        yield from _uses_of(part, int(part.device[0]), scopes)


def _uses_of(work: DeviceWork, device: int, scopes: Sequence[str]) -> Iterator[DeviceUse]:
    heads, until = _blocks(work)
    idle_ns = np.zeros(len(heads), dtype=np.int64)
    idle_ns[1:] = work.start[heads[1:]] - until[:-1]
    called = work.called[work.called != UNCALLED]
    if len(called):  # the window begins with the first launch
        idle_ns[0] = max(0, int(work.start[0]) - int(called.min()))
    long_ns = np.where(idle_ns >= LONG_IDLE_NS, idle_ns, 0)
    yield replace(_use(work, device), idle_ns=int(idle_ns.sum()), long_idle_ns=int(long_ns.sum()))
    by_scope = np.argsort(work.scope, kind="stable")
    numbers, first, counts = np.unique(work.scope, return_index=True, return_counts=True)
    ends = np.cumsum(counts)
    own_idle_ns, own_long_ns = np.zeros((2, len(numbers)), dtype=np.int64)
    owners = np.searchsorted(numbers, work.scope[heads])
    np.add.at(own_idle_ns, owners, idle_ns)
    np.add.at(own_long_ns, owners, long_ns)
    places = [place for place in np.argsort(first).tolist() if numbers[place] >= 0]
    for place in places[:_MOST_SCOPES]:
        use = _use(work.take(by_scope[ends[place] - counts[place] : ends[place]]), device)
        name = scopes[int(numbers[place])]
        yield replace(
            use,
            scope=name,
            idle_ns=int(own_idle_ns[place]),
            long_idle_ns=int(own_long_ns[place]),
        )


def _blocks(work: DeviceWork) -> tuple[Array, Integers]:
    """Return the first element of each stretch in which something ran, and when it ended."""
    until = np.maximum.accumulate(work.end)
    begins = np.ones(len(until), dtype=np.bool_)
    begins[1:] = work.start[1:] > until[:-1]
    heads = np.flatnonzero(begins)
    return heads, until[np.append(heads[1:], len(until)) - 1]


def _covered_ns(work: DeviceWork) -> int:
    if not len(work.start):
        return 0
    heads, until = _blocks(work)
    return int((until - work.start[heads]).sum())


def _use(work: DeviceWork, device: int) -> DeviceUse:
    busy_ns = _covered_ns(work)
    waiting_ns = 0
    if work.is_waiting.any():
        waiting_ns = busy_ns - _covered_ns(work.take(~work.is_waiting))
    use = DeviceUse(None, device, busy_ns=busy_ns, waiting_ns=waiting_ns)
    measured = work.latencies
    latencies = measured[(measured >= 0) & (measured <= FAR_NS)]
    use = replace(use, latency_clamped=len(measured) - len(latencies))
    if not len(latencies):
        return use
    first, buckets = _histogram(latencies)
    return replace(
        use,
        launches=len(latencies),
        latency_sum_ns=min(int(latencies.sum(dtype=object)), _MOST),
        latency_min_ns=int(latencies.min()),
        latency_max_ns=int(latencies.max()),
        latency_first_bucket=first,
        latency_buckets=buckets,
    )


def _histogram(latencies: Integers) -> tuple[int, tuple[int, ...]]:
    distinct, counts = np.unique(latencies, return_counts=True)
    numbers = [latency_bucket(value) for value in distinct.tolist()]
    first = min(numbers)
    found = [0] * (max(numbers) - first + 1)
    for number, count in zip(numbers, counts.tolist(), strict=True):
        found[number - first] += count
    return first, tuple(found)


def with_uses(
    profile: Profile, uses: Iterator[DeviceUse], devices: Mapping[int, Device]
) -> Profile:
    """Return the profile with the use of its devices.

    Args:
        profile: A profile of the same timeline.
        uses: They name devices by the numbers of the timeline.
        devices: The device of each of these numbers.
    """
    places = {device: place for place, device in enumerate(profile.devices)}
    found = []
    for use in uses:
        place = places.get(devices[use.device]) if use.device in devices else None
        if place is not None:
            found.append(replace(use, device=place))
    return replace(profile, device_use=tuple(found))


UNMATCHED = "device work whose launch is not in the file: kept under ROOT"
AMBIGUOUS = "device work whose id several launches share: kept under ROOT"

LATENCY_SUM = "launch_latency_sum (ns)"
LATENCY_COUNT = "launch_latency_count"
WAITING = "waiting_kernel"

_NONE, _SEVERAL = -1, -2
_EARLY_NS = 10**9
_LAUNCHED = (FrameKind.KERNEL, FrameKind.GRAPH)


def place_work(
    timeline: Timeline, launch_rows: Integers, *, path_rows: Integers | None = None
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


def _fits_launch(timeline: Timeline, launch: Integers) -> Mask:
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


def _place_by_range(timeline: Timeline, parents: Integers) -> Mask:
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


def _first_kernels(timeline: Timeline, launch: Integers) -> Mask:
    """Mark the first kernel of each launch: a graph launches many, and has one latency."""
    work = timeline.work
    places = np.flatnonzero((launch >= 0) & np.isin(work["kind"], _LAUNCHED))
    ordered = places[np.lexsort((work["start"][places], launch[places]))]
    found = np.zeros(len(work), dtype=np.bool_)
    _, first = np.unique(launch[ordered], return_index=True)
    found[ordered[first]] = True
    return found


def _waiting_names(timeline: Timeline) -> Mask:
    texts = timeline.tree.strings.texts()
    return np.array([is_waiting_kernel(text) for text in texts], dtype=np.bool_)


def _add_sums(timeline: Timeline, parents: Integers, *, latency: Integers, is_timed: Mask) -> None:
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


def _heads(keys: tuple[Integers, ...]) -> Integers:
    """Return where a new group begins among sorted keys."""
    differs = np.zeros(len(keys[0]), dtype=np.bool_)
    differs[:1] = True
    for key in keys:
        differs[1:] |= key[1:] != key[:-1]
    found: Integers = np.flatnonzero(differs)
    return found


def _sums(timeline: Timeline, values: Integers, heads: Integers) -> list[int]:
    if not len(heads):
        return []
    if float(values.sum(dtype=np.float64)) >= MAX_NS:
        raise corrupt(timeline.reading.source, "its times add up to more than 64 bits hold")
    found: list[int] = np.add.reduceat(values, heads).tolist()
    return found


def _launch_of(timeline: Timeline, launch_rows: Integers) -> Integers:
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

"""How busy devices were, from the single events of a timeline.

The rules are those of recorded sessions (``native/src/aggregate/device_times.h``). All events are
there at once, so nothing comes too late to be placed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.formats.timeline.ranges import FAR_NS
from proton_bench.model.device import Device
from proton_bench.model.metrics.device_use import LONG_IDLE_NS, DeviceUse, latency_bucket
from proton_bench.model.profile import Profile

__all__ = ["UNCALLED", "DeviceWork", "device_uses", "is_waiting_kernel", "with_uses"]

# The time of a launch that is not known.
UNCALLED = -(2**63)
_MOST_SCOPES = 4096
_MOST = 2**63 - 1
_FAR_NS = 2**61  # differences and sums of times below this fit 64 bits
# NCCL's kernels also take time while they wait for the other devices.
_WAITING = re.compile(r"(_Z\d+)?nccl(Dev)?Kernel")

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


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

    device: Numbers
    scope: Numbers
    start: Numbers
    end: Numbers
    called: Numbers
    is_timed: Mask
    is_waiting: Mask

    def take(self, places: npt.NDArray[Any] | slice) -> DeviceWork:
        """Return these elements, in this order."""
        names = ("device", "scope", "start", "end", "called", "is_timed", "is_waiting")
        return DeviceWork(*(getattr(self, name)[places] for name in names))

    @property
    def latencies(self) -> Numbers:
        """Launch latencies in ns, negative where the clocks disagree."""
        found: Numbers = (self.start - self.called)[self.is_timed]
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


def _blocks(work: DeviceWork) -> tuple[npt.NDArray[Any], Numbers]:
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


def _histogram(latencies: Numbers) -> tuple[int, tuple[int, ...]]:
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

"""Where scopes stand in a roofline that name the work done in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.metrics.formula import FLOPS_WIDTHS, SECONDS, find_metric
from proton_bench.analysis.metrics.measured_work import (
    Amount,
    busiest_pipe_seconds,
    dram_bytes,
    measured_work_names,
    pipe_flops,
    requested_and_moved,
    size_text,
    traffic_text,
)
from proton_bench.analysis.metrics.roofline import (
    Roofline,
    own_values,
    roofline,
    roofline_peaks,
    single_devices,
)
from proton_bench.errors import MetricError
from proton_bench.model.arrays import Floats, Mask
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

# What is beyond these is not a rate of any device, and would squeeze all others into a corner.
_LEAST, _MOST = 1e-20, 1e30
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True, slots=True)
class PlottedKernel:
    """Where a kernel stands.

    Attributes:
        name: Its name, visible.
        intensity: Operations per byte.
        rate: Operations per second.
        seconds: Its time.
        distance: Its time / its attainable time.
        bound: What bounds it: ``compute`` or ``memory``; "" where peak rates are not known.
        source: Where its bytes come from: ``measured`` or ``named``.
        words: Its place in words.
    """

    name: str
    intensity: float
    rate: float
    seconds: float
    distance: float
    bound: str
    source: str
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class KnownWork:
    """What is known of the work of each row.

    Attributes:
        named: What launches name, None if nothing.
        moved: Bytes that counters measured, None without them.
        done: Operations by counters, None without them.
        pipe_seconds: Least time of these operations.
        requests: Bytes that launches request, where they are comparable with ``moved``.
        named_flops: Operations that launches name, by ``flops8`` to ``flops64``.
    """

    named: Roofline | None
    moved: Amount | None
    done: Amount | None
    pipe_seconds: Floats
    requests: Mapping[str, Floats]
    named_flops: Mapping[str, Floats]


def known_work(profile: Profile) -> KnownWork | None:
    """Return the work of the rows of a flat profile, None if nothing is known."""
    with np.errstate(all="ignore"):  # as where metrics are derived
        return _known_work(profile)


def _known_work(profile: Profile) -> KnownWork | None:
    try:
        named = roofline(profile)
    except MetricError:
        named = None
    known = measured_work_names(profile)
    moved = dram_bytes(profile) if "dram_bytes" in known else None
    done = pipe_flops(profile) if "pipe_flops" in known else None
    if named is None and (moved is None or done is None):
        return None
    requests = requested_and_moved(profile)[0] if "traffic" in known else {}
    least = np.zeros(len(profile)) if done is None else busiest_pipe_seconds(profile)
    flops = {f"flops{width}": own_values(profile, f"flops{width}") for width in FLOPS_WIDTHS}
    known_flops = {name: own for name, own in flops.items() if own is not None}
    return KnownWork(named, moved, done, least, requests, known_flops)


def plotted_kernel(
    profile: Profile, work: KnownWork, row: int, *, peaks: Mapping[str, float]
) -> PlottedKernel | None:
    """Return a row as a point, None if its operations or bytes are not known."""
    done, moved = _operations(work, row, peaks), _bytes(work, row)
    if done is None or moved is None or not _LEAST <= moved.rate <= _MOST:
        return None
    if not (_LEAST <= done.rate <= _MOST and _LEAST <= done.rate / moved.rate <= _MOST):
        return None
    memory = moved.rate / peaks["bytes"]
    return PlottedKernel(
        name=visible(profile.name(row)),
        intensity=done.rate / moved.rate,
        rate=done.rate,
        seconds=done.seconds,
        distance=1.0 / max(done.share, memory),
        bound="compute" if done.share >= memory else "memory",
        source=moved.source,
        words=f"{done.words}{scaled(done.rate)}FLOP/s at {done.rate / moved.rate:.3g} FLOP per "
        f"byte{moved.words}",
    )


@dataclass(frozen=True, slots=True)
class _Operations:
    rate: float
    share: float  # of what the device can do
    seconds: float
    words: str = ""


@dataclass(frozen=True, slots=True)
class _Bytes:
    rate: float
    source: str
    words: str = ""


def _operations(work: KnownWork, row: int, peaks: Mapping[str, float]) -> _Operations | None:
    named, done = work.named, work.done
    if named is not None and named.operations[row] > 0 and named.time_seconds[row] > 0:
        time = float(named.time_seconds[row])
        least = sum(
            float(own[row]) / peaks[name] for name, own in work.named_flops.items() if name in peaks
        )
        return _Operations(float(named.operations[row]) / time, least / time, time)
    if done is None or not done.valid[row] or done.values[row] <= done.halves[row]:
        return None
    time = float(done.seconds[row])
    if time <= 0:
        return None
    share = float(work.pipe_seconds[row]) / time
    return _Operations(float(done.values[row]) / time, share, time, "at most ")


def _bytes(work: KnownWork, row: int) -> _Bytes | None:
    moved, named = work.moved, work.named
    if moved is not None and moved.valid[row]:
        amount, half = float(moved.values[row]), float(moved.halves[row])
        # Where it may be none, the far end of the interval is a place that is not too good.
        least = amount + half if amount <= half else amount
        if least > 0 and moved.seconds[row] > 0:
            rate = least / float(moved.seconds[row])
            return _Bytes(rate, "measured", _moved_words(work, row, amount=amount, half=half))
    if named is not None and named.moved_bytes[row] > 0 and named.time_seconds[row] > 0:
        return _Bytes(float(named.moved_bytes[row]) / float(named.time_seconds[row]), "named")
    return None


def _moved_words(work: KnownWork, row: int, *, amount: float, half: float) -> str:
    requests = {name: float(values[row]) for name, values in work.requests.items()}
    if any(requests.values()):
        return f" ({traffic_text(requests, amount, half)})"
    if amount <= half:
        return f" (DRAM moved at most {size_text(amount + half)})"
    return f" (DRAM moved {size_text(amount)} +-{size_text(half)})"


def scaled(value: float) -> str:
    """Return a number with the prefix for its unit: ``1.07 P``."""
    factor, prefix = next((step for step in _PREFIXES if value >= step[0]), _PREFIXES[-1])
    return f"{value / factor:.3g} {prefix}"


_WIDTHS = tuple(f"flops{width}" for width in FLOPS_WIDTHS)
# Of work below a scope, or of the scope itself.
_TIMES = ("time", "cpu_time")
_MAX_POINT_NAME = 120


@dataclass
class _Work:
    """The work of all scopes of one name on one device."""

    flops: dict[str, float]
    moved: float = 0.0
    seconds: float = 0.0


def plotted_scopes(profile: Profile) -> Mapping[int, Sequence[PlottedKernel]]:
    """Return the scopes whose operations, bytes and time are known, by the place of their device.

    The place is negative where no single device worked below. A scope on a device whose peak rates
    are not known has no bound.
    """
    flops, moved, seconds = _flops(profile), own_values(profile, "bytes"), _seconds(profile)
    if not flops or moved is None or seconds is None:
        return {}
    known = (sum(flops.values()) > 0) & (moved > 0) & (seconds > 0) & _are_scopes(profile)
    places = single_devices(profile)
    works: dict[tuple[int, str], _Work] = {}
    for row in np.flatnonzero(known).tolist():
        key = (int(places[row]), profile.name(row))
        work = works.setdefault(key, _Work(dict.fromkeys(flops, 0.0)))
        work.moved += float(moved[row])
        work.seconds += float(seconds[row])
        for name, own in flops.items():
            work.flops[name] += float(own[row])
    found: dict[int, list[PlottedKernel]] = defaultdict(list)
    for (place, name), work in works.items():
        peaks = roofline_peaks(profile.devices[place]) if place >= 0 else {}
        found[place].append(_plotted(name, work, peaks))
    return found


def scopes_without_bytes(profile: Profile) -> str:
    """Return which scopes name operations and no bytes, and so have no place; "" for none."""
    flops, moved = _flops(profile), own_values(profile, "bytes")
    if not flops:
        return ""
    lacking = (sum(flops.values()) > 0) & _are_scopes(profile)
    lacking &= True if moved is None else moved <= 0
    names = dict.fromkeys(profile.name(row) for row in np.flatnonzero(lacking).tolist())
    if not names:
        return ""
    first = visible(next(iter(names)), _MAX_POINT_NAME)
    rest = f" and {count_text(len(names) - 1, 'other scope')}" if len(names) > 1 else ""
    return (
        f"{first}{rest} without bytes beside their operations: with both, such as "
        'metrics={"flops32": 2e9, "bytes": 4e6}, they have a place here.'
    )


def _plotted(name: str, work: _Work, peaks: Mapping[str, float]) -> PlottedKernel:
    total = sum(work.flops.values())
    least = sum(each / peaks[name] for name, each in work.flops.items() if name in peaks)
    memory = work.moved / peaks["bytes"] if "bytes" in peaks else 0.0
    attainable = max(least, memory)
    rate, intensity = total / work.seconds, total / work.moved
    return PlottedKernel(
        name=visible(name),
        intensity=intensity,
        rate=rate,
        seconds=work.seconds,
        distance=work.seconds / attainable if attainable else float("nan"),
        bound=("compute" if least >= memory else "memory") if attainable else "",
        source="named",
        words=f"{scaled(rate)}FLOP/s at {intensity:.3g} FLOP per byte",
    )


def _flops(profile: Profile) -> dict[str, Floats]:
    found = {name: own_values(profile, name) for name in _WIDTHS}
    return {name: own for name, own in found.items() if own is not None}


def _are_scopes(profile: Profile) -> Mask:
    found: Mask = profile.kinds == FrameKind.SCOPE
    return found


def _seconds(profile: Profile) -> Floats | None:
    """Return the time of each row and all below it, in the first metric that has one."""
    seconds: Floats | None = None
    for name in _TIMES:
        full = find_metric(name, profile.columns)
        if full is None or not profile.columns[full].kind.is_number:
            continue
        values = profile.inclusive(full).astype(np.float64)
        values = np.where(np.isfinite(values) & (values > 0), values, 0.0)
        values *= SECONDS.get(MetricSpec(full).unit, SECONDS["ns"])
        seconds = values if seconds is None else np.where(seconds > 0, seconds, values)
    return seconds

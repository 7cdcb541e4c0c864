"""What counters measured: use of units, bytes, operations, their rates, ``traffic``.

How busy units were is ``<unit>_pct``, the share of what the unit can do at most, and
``<unit>_err``, half of its 95 % interval in points. A recording stores times and variances, which
add up over rows, ranks and runs; they are divided here. A share that is known less well than
``WIDEST`` is withheld.

Bytes are the share of DRAM's throughput x bandwidth x time. Operations are the share of a pipe x
its peak x the clock of that time: at most, because moves and integer products of the FMA pipe count
as multiply-adds. What a tensor pipe did in a cycle depends on the width of its operands. That is
the only width of operations that its launches name, else it comes from the name of the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.kernels.gpu_facts import are_missing
from proton_bench.analysis.metrics.formula import FLOPS_WIDTHS, SECONDS, find_metric
from proton_bench.analysis.metrics.peak import clock_ratio, pipe_rates
from proton_bench.analysis.metrics.roofline import (
    own_seconds,
    own_values,
    roofline_peaks,
    single_devices,
)
from proton_bench.analysis.metrics.values import (
    WIDEST,
    DerivedMetric,
    MetricValues,
    own_numbers,
    quotient,
)
from proton_bench.analysis.naming.kernel_names import kernel_texts
from proton_bench.analysis.view.names import rows_below
from proton_bench.errors import MetricError
from proton_bench.model import preorder
from proton_bench.model.arrays import Floats, Integers, Mask
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.counter_columns import (
    COUNTED_TIME,
    CYCLES,
    SAMPLED_TIME,
    UNITS,
    bias_column,
    busy_column,
    variance_column,
)
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

_KERNEL_TIME = "time (ns)"
_COVERAGE = "counter_coverage"
_SHARE, _ERROR = "_pct", "_err"
_HALF = "half of the 95 % interval, in points"
_SAMPLED_PART = "percent of the time of kernels that was sampled"


def unit_use_names(recorded: Iterable[str]) -> tuple[str, ...]:
    """Return the names that can be computed from these recorded metrics."""
    known = set(recorded)
    if COUNTED_TIME not in known:
        return ()
    units = [unit for unit in UNITS if busy_column(unit) in known]
    names = [f"{unit}{ending}" for unit in units for ending in (_SHARE, _ERROR)]
    return (*names, *((_COVERAGE,) if SAMPLED_TIME in known else ()))


def unit_use_values(profile: Profile, name: str) -> MetricValues:
    """Return one of these metrics for each row, from 0 to 100.

    Raises:
        MetricError: No counters were recorded, or not of this unit.
    """
    text = name.strip().lower()
    recorded = tuple(metric for metric, each in profile.columns.items() if each.kind.is_number)
    known = unit_use_names(recorded)
    if text not in known:
        have = f"known are {', '.join(known)}" if known else _none(profile)
        raise MetricError(f"metric {name!r} needs hardware counters: {have}")
    with np.errstate(over="ignore", invalid="ignore"):  # a file may hold any number
        return _shares(profile, text, recorded)


def _none(profile: Profile) -> str:
    if are_missing(profile):
        return "this run asked for them in vain: proton view says why"
    return "this file has none: proton run -m counters records them"


def _shares(profile: Profile, text: str, recorded: tuple[str, ...]) -> MetricValues:
    time = profile.inclusive(COUNTED_TIME)
    sampled = profile.covered(COUNTED_TIME) & (time > 0)
    if text == _COVERAGE:
        whole = np.maximum(time, _kernel_ns(profile))
        values, valid = quotient(100.0 * profile.inclusive(SAMPLED_TIME), whole, sampled)
        valid &= np.isfinite(values)
        return MetricValues(text, Aggregation.PROPERTY, values, valid, _SAMPLED_PART)
    unit = text.removesuffix(_SHARE).removesuffix(_ERROR)
    halves, valid = quotient(100.0 * _half_ns(profile, unit, recorded), time, sampled)
    valid &= np.isfinite(halves)
    if text.endswith(_ERROR):
        return MetricValues(text, Aggregation.PROPERTY, halves, valid, _HALF)
    values, valid = quotient(100.0 * profile.inclusive(busy_column(unit)), time, valid)
    valid &= np.isfinite(values) & (halves <= WIDEST)
    meaning = f"{UNITS[unit]}, % of the peak"
    return MetricValues(text, Aggregation.PROPERTY, values, valid, meaning, halves)


def _kernel_ns(profile: Profile) -> Floats:
    """Return the time of all kernels of each row: of merged runs some may have no counters."""
    is_kernel = profile.kinds == FrameKind.KERNEL
    own = np.where(is_kernel, own_numbers(profile, _KERNEL_TIME), 0.0)
    return preorder.sums(profile.parents, own)


def interval_half(variance: Floats | float, bias: Floats | float) -> Floats:
    """Return half of the 95 % interval of the time in which a unit was busy, in ns.

    The variance of a row holds all of its error. In a sum of rows it forgets that a part of these
    errors is alike, which adds up as it is.

    Args:
        variance: Summed variances in ns^2.
        bias: Summed errors that come back in every row, in ns.
    """
    half: Floats = _95_PERCENT * np.maximum(np.sqrt(np.maximum(variance, 0.0)), bias)
    return half


def _half_ns(profile: Profile, unit: str, recorded: Iterable[str]) -> Floats:
    """Return half of the interval of a unit's time for each row; infinite if unknown."""
    known = tuple(recorded)
    variance = find_metric(variance_column(unit), known)
    if variance is None:
        return np.full(len(profile), np.inf)
    bias = find_metric(bias_column(unit), known)
    return interval_half(
        profile.inclusive(variance).astype(np.float64),
        profile.inclusive(bias).astype(np.float64) if bias is not None else 0.0,
    )


UNIT_USE = DerivedMetric(
    re.compile(rf"{_COVERAGE}|(?:{'|'.join(UNITS)})(?:{_SHARE}|{_ERROR})"),
    offered=lambda _, numbers: unit_use_names(numbers),
    values=unit_use_values,
)

_BYTES, _FLOPS, _TRAFFIC = "dram_bytes", "pipe_flops", "traffic"
_PREFIXES = {"": 1.0, "g": 1e9, "t": 1e12}
_RATES = {
    **{f"dram_{prefix}byte/s": (_BYTES, scale) for prefix, scale in _PREFIXES.items()},
    **{f"pipe_{prefix}flop/s": (_FLOPS, scale) for prefix, scale in _PREFIXES.items()},
}
_PIPES = ("tensor", "fp32", "fp64")
_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_95_PERCENT = 1.959964  # standard errors of a normal distribution
# Least part of the compared time with counters: traffic that is not counted would look like hits
# in a cache.
_LEAST_MEASURED = 0.95
# Smaller differences are not reported: neither number of bytes is more exact than that.
_ALIKE = 0.1
# Bytes that launches request, in words: by what the kernel's code asks for, and by launch_metadata.
_REQUESTS = {"code_bytes": "asks for", "bytes": "names"}

_MEANINGS = {
    _BYTES: "what the device's memory moved, from counters",
    _FLOPS: "from counters of {}, at most: each instruction of the FMA pipe is a multiply-add",
    _TRAFFIC: "what the code asks for, or else what launches name, and what the device's memory "
    "moved; if less, caches served the rest",
}
# Types of operands in the short forms of names, by their width.
_WIDTHS = (
    (re.compile(r"\b(?:f8|fp8|e4m3|e5m2|i8|s8|u8|int8)\b"), 8),
    (re.compile(r"\b(?:f16|fp16|bf16)\b"), 16),
    (re.compile(r"\b(?:tf32|f32)\b"), 32),
    (re.compile(r"\bf64\b"), 64),
)


@dataclass(frozen=True, slots=True, eq=False)
class Amount:
    """An amount of work of every row and all rows below it.

    Attributes:
        values: Bytes, or operations.
        halves: Half of their 95 % interval.
        valid: Whether the share that they come from is known within 6 points.
        seconds: Time that they stand for.
    """

    values: Floats
    halves: Floats
    valid: Mask
    seconds: Floats


def measured_work_names(profile: Profile) -> tuple[str, ...]:
    """Return the names that can be computed for a profile."""
    names: list[str] = []
    if _has(profile, ["dram"]) and any("bytes" in roofline_peaks(each) for each in profile.devices):
        names += [_BYTES, *(rate for rate, (of, _) in _RATES.items() if of == _BYTES)]
        is_requested = any(own_values(profile, name) is not None for name in _REQUESTS)
        names += [_TRAFFIC] if is_requested else []
    if _has(profile, _PIPES) and any(map(pipe_rates, profile.devices)):
        names += [_FLOPS, *(rate for rate, (of, _) in _RATES.items() if of == _FLOPS)]
    return tuple(names)


def _values(profile: Profile, name: str) -> MetricValues:
    text = name.strip().lower()
    known = measured_work_names(profile)
    if text not in known:
        have = f"known are {', '.join(known)}" if known else "this file lacks one of these"
        more = ", and bytes of launches (-k triton)" if text == _TRAFFIC else ""
        raise MetricError(
            f"metric {name!r} needs hardware counters (proton run -m counters) of a device with "
            f"known peak rates{more}: {have}"
        )
    if text == _TRAFFIC:
        return _traffic(profile)
    base, scale = _RATES.get(text, (text, 1.0))
    amount = dram_bytes(profile) if base == _BYTES else pipe_flops(profile)
    meaning = _MEANINGS[base].format(", ".join(_pipes(profile)))
    if text == base:
        return MetricValues(
            text, Aggregation.INCLUSIVE, amount.values, amount.valid, meaning, amount.halves
        )
    rates, valid = quotient(amount.values / scale, amount.seconds, amount.valid)
    halves, _ = quotient(amount.halves / scale, amount.seconds, amount.valid)
    return MetricValues(text, Aggregation.PROPERTY, rates, valid, meaning, halves)


MEASURED_WORK = DerivedMetric(
    re.compile("|".join((*_MEANINGS, *_RATES))),
    offered=lambda profile, _: measured_work_names(profile),
    values=_values,
)


def dram_bytes(profile: Profile) -> Amount:
    """Return the bytes that the memory of devices moved."""
    scale = _by_device(
        profile, [roofline_peaks(each).get("bytes", 0.0) for each in profile.devices]
    )
    values, halves, valid = _scaled(profile, "dram", scale * SECONDS["ns"])
    return Amount(values, halves, valid, _seconds(profile))


def pipe_flops(profile: Profile) -> Amount:
    """Return the operations that the pipes did at most in their busy cycles."""
    clocks = _clock_ratios(profile) * SECONDS["ns"]
    values, halves = np.zeros(len(profile)), np.zeros(len(profile))
    valid = np.ones(len(profile), dtype=np.bool_)
    for pipe in _pipes(profile):
        scale = _tensor_rates(profile) if pipe == "tensor" else _pipe_rates(profile, pipe)
        amount, half, known = _scaled(profile, pipe, scale * clocks)
        values, halves, valid = values + amount, np.hypot(halves, half), valid & known
    return Amount(values, halves, valid & _is_width_known(profile), _seconds(profile))


def busiest_pipe_seconds(profile: Profile) -> Floats:
    """Return how long each row's own operations take at least, at the highest clock."""
    found = np.zeros(len(profile))
    for pipe in _pipes(profile):
        known = _tensor_rates(profile) > 0 if pipe == "tensor" else True
        found = np.maximum(found, np.where(known, _own(profile, busy_column(pipe)), 0.0))
    seconds: Floats = found * _clock_ratios(profile) * SECONDS["ns"]
    return seconds


def requested_and_moved(profile: Profile) -> tuple[Mapping[str, Floats], Amount]:
    """Return the bytes that launches request, and what DRAM moved.

    Requests are by ``code_bytes`` and ``bytes``, 0 in rows where they are not known or not
    comparable: a request is comparable where nearly all work of a row has it and was measured.
    """
    moved = dram_bytes(profile)
    requests: dict[str, Floats] = {}
    for name in _REQUESTS:
        own = own_values(profile, name)
        if own is None:
            continue
        compared = rows_below(own > 0, profile.subtree_end)
        every = _below(profile, np.where(compared, own_seconds(profile), 0.0))
        counted = _own(profile, COUNTED_TIME) * SECONDS["ns"]
        known = _below(profile, np.where(compared, counted, 0.0))
        # Rows that request no bytes move some too, so sums with many such rows are not compared.
        whole = known >= _LEAST_MEASURED * np.maximum(every, moved.seconds)
        valid = moved.valid & (known > 0) & whole
        requests[name] = np.where(valid, _below(profile, own), 0.0)
    return requests, moved


def traffic_text(requests: Mapping[str, float], moved: float, half: float) -> str:
    """Return how the bytes that launches request differ from those that DRAM moved.

    Args:
        requests: Bytes by ``code_bytes`` and ``bytes``, 0 where they are not known.
        moved: Bytes that the device's memory moved.
        half: Half of the 95 % interval of ``moved``.
    """
    text = _side_by_side(requests, moved)
    name = _known(requests)[0]
    if abs(moved - requests[name]) <= max(half, _ALIKE * requests[name]):
        return text
    if moved > requests[name]:
        return f"{text}: more than it {_REQUESTS[name]}"
    return f"{text}: the rest came from caches{' or was masked' if name == 'code_bytes' else ''}"


def _known(requests: Mapping[str, float]) -> list[str]:
    return [name for name in _REQUESTS if requests.get(name, 0.0) > 0]


def _side_by_side(requests: Mapping[str, float], moved: float) -> str:
    known = [f"{_REQUESTS[name]} {size_text(requests[name])}" for name in _known(requests)]
    return ", ".join([*known, f"DRAM moved {size_text(moved)}"])


def size_text(amount: float) -> str:
    """Return bytes with a decimal prefix, as rates and data sheets have them: ``1.1 GB``."""
    scale, prefix = next((step for step in _SIZES if amount >= step[0]), (1.0, ""))
    return f"{amount / scale:.3g} {prefix}B"


def _traffic(profile: Profile) -> MetricValues:
    requests, moved = requested_and_moved(profile)
    texts = np.empty(len(profile), dtype=object)
    valid = np.any([values > 0 for values in requests.values()], axis=0)
    for row in np.flatnonzero(valid).tolist():
        known = {name: float(values[row]) for name, values in requests.items()}
        name = _known(known)[0]  # a column has room for one
        texts[row] = _side_by_side({name: known[name]}, float(moved.values[row]))
    return MetricValues(_TRAFFIC, Aggregation.PROPERTY, texts, valid, _MEANINGS[_TRAFFIC])


def _scaled(profile: Profile, unit: str, scale: Floats) -> tuple[Floats, Floats, Mask]:
    """Return busy time x scale with half of its interval, and where the share is known."""
    busy = _own(profile, busy_column(unit))
    variance = _below(profile, _own(profile, variance_column(unit)) * scale**2)
    # As for shares: a part of the errors is the same in all rows, so it adds up linearly.
    bias = _below(profile, _own(profile, bias_column(unit)) * scale)
    halves = _95_PERCENT * np.maximum(np.sqrt(np.maximum(variance, 0.0)), bias)
    valid = unit_use_values(profile, f"{unit}_pct").valid
    # Rows on a device of unknown rate, and sums that contain them, have no value.
    lacking = _below(profile, np.where((scale <= 0) & (busy > 0), _own(profile, COUNTED_TIME), 0.0))
    if unit != "tensor":
        valid = valid & (lacking <= 0)
    values = _below(profile, busy * scale)
    return values, halves, valid & np.isfinite(values) & np.isfinite(halves)


def _has(profile: Profile, units: Iterable[str]) -> bool:
    known = unit_use_names(profile.columns)
    return any(f"{unit}_pct" in known for unit in units)


def _pipes(profile: Profile) -> list[str]:
    return [pipe for pipe in _PIPES if _has(profile, [pipe])]


def _by_device(profile: Profile, rates: Sequence[float]) -> Floats:
    """Return the rate of each row's device, 0 without one."""
    # The last entry answers for rows without a device, whose place is -1.
    found: Floats = np.array([*rates, 0.0])[single_devices(profile)]
    return found


def _pipe_rates(profile: Profile, pipe: str) -> Floats:
    return _by_device(profile, [pipe_rates(each).get(pipe, 0.0) for each in profile.devices])


def _tensor_rates(profile: Profile) -> Floats:
    """Return the rate of each row's tensor pipes; 0 where they rest or the width is not known."""
    widths = _tensor_widths(profile)
    found = np.zeros(len(profile))
    for width in FLOPS_WIDTHS:
        rates = [roofline_peaks(each).get(f"flops{width}", 0.0) for each in profile.devices]
        found = np.where(widths == width, _by_device(profile, rates), found)
    return found


def _tensor_widths(profile: Profile) -> Integers:
    """Return the width of operands of each row that uses tensor pipes, in bits; 0 if not known.

    Their counter also moves a few points with other pipes, so that small shares say nothing.
    """
    busy, time = _own(profile, busy_column("tensor")), _own(profile, COUNTED_TIME)
    rows = np.flatnonzero((time > 0) & (busy > WIDEST / 100 * time)).tolist()
    kernels = [row for row in rows if profile.kind(row) is FrameKind.KERNEL]
    texts = kernel_texts({profile.name(row) for row in kernels})
    named = {width: own_values(profile, f"flops{width}") for width in FLOPS_WIDTHS}
    widths = np.zeros(len(profile), dtype=np.int64)
    for row in rows:
        said = [width for width, own in named.items() if own is not None and own[row] > 0]
        text = texts.get(profile.name(row), "")
        found = [width for pattern, width in _WIDTHS if pattern.search(text)]
        widths[row] = next((each[0] for each in (said, found) if len(each) == 1), 0)
    return widths


def _is_width_known(profile: Profile) -> Mask:
    """Mark the rows in which tensor pipes of unknown width took at most 6 points of the time."""
    time, busy = _own(profile, COUNTED_TIME), _own(profile, busy_column("tensor"))
    unknown = (busy > WIDEST / 100 * time) & (_tensor_rates(profile) <= 0)
    known: Mask = _below(profile, np.where(unknown, busy, 0.0)) <= WIDEST / 100 * _below(
        profile, time
    )
    return known


def _clock_ratios(profile: Profile) -> Floats:
    """Return each row's own clock / the highest; 1 where it was not counted."""
    cycles, time = _own(profile, CYCLES), _own(profile, COUNTED_TIME)
    found, places = np.ones(len(profile)), single_devices(profile)
    for row in np.flatnonzero((cycles > 0) & (time > 0)).tolist():
        place = int(places[row])
        device = profile.devices[place] if place >= 0 else None
        ratio = clock_ratio(device, float(cycles[row]), float(time[row]))
        found[row] = ratio if np.isfinite(ratio) else 1.0
    return found


def _own(profile: Profile, name: str) -> Floats:
    found = own_values(profile, name)
    return np.zeros(len(profile)) if found is None else found


def _seconds(profile: Profile) -> Floats:
    return _below(profile, _own(profile, COUNTED_TIME)) * SECONDS["ns"]


def _below(profile: Profile, own: Floats) -> Floats:
    return preorder.sums(profile.parents, own)

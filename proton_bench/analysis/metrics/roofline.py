"""The roofline: the least time of work on its device, its bound, and the distance from it.

The least time of a row's own work is the larger of the sum of flops<width> / peak of the width, and
of bytes / bandwidth. Times of rows below are added, so a scope's roof is that of its kernels one
after the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.metrics.formula import SECONDS, find_metric
from proton_bench.analysis.metrics.peak import (
    WORK,
    architecture_rates,
    known_architectures,
    no_work,
    offered_peaks,
    peak_rates,
)
from proton_bench.analysis.metrics.values import DerivedMetric, MetricValues, quotient
from proton_bench.analysis.view.names import rows_below
from proton_bench.errors import MetricError
from proton_bench.model.arrays import Array, Floats, Mask
from proton_bench.model.device import Device
from proton_bench.model.metrics.metric import Aggregation, MetricSpec
from proton_bench.model.profile import Profile

_ROOF_TIME = "roof_time"
_BOUND = "bound"
_DISTANCE = "roof_distance"
_INTENSITY = "intensity"
_NAMES = (*(f"{_ROOF_TIME}/{unit}" for unit in SECONDS), _BOUND, _DISTANCE, _INTENSITY)

_MEANINGS = {
    _ROOF_TIME: "attainable time of the row and all rows below it",
    _BOUND: "bound of most of the attainable time of the row and all rows below it",
    _DISTANCE: "time / attainable time of the row and all rows below it, 1 at the roof",
    _INTENSITY: "operations per byte of the row and all rows below it",
}
_NONE, _SEVERAL = -1, -2  # devices of a row


@dataclass(frozen=True, slots=True, eq=False)
class Roofline:
    """The roof of every row, over the row and all rows below it.

    Attributes:
        seconds: Attainable time in seconds.
        compute_seconds: Part of it in rows that operations bound; the rest is memory's.
        time_seconds: Recorded time of the rows whose work is known.
        operations: Floating-point operations of all widths.
        moved_bytes: Bytes moved.
        valid: Whether work is known of the row or one below.
        unknown: Devices with work whose peak rates are not known, such as ``XPU x1``.
    """

    seconds: Floats
    compute_seconds: Floats
    time_seconds: Floats
    operations: Floats
    moved_bytes: Floats
    valid: Mask
    unknown: tuple[str, ...] = ()

    def bounds(self) -> Array:
        """Return "compute" or "memory" for each row, whichever is most of its attainable time."""
        is_compute = self.compute_seconds * 2 >= self.seconds
        return np.where(is_compute, "compute", "memory").astype(object)


def _offered(profile: Profile, numbers: Sequence[str]) -> tuple[str, ...]:
    del profile
    bases = {MetricSpec(full).base.lower() for full in numbers}
    return _NAMES if "time" in bases and bases & set(WORK) else ()


def _values(profile: Profile, name: str) -> MetricValues:
    roof, text = roofline(profile), name.strip().lower()
    meaning = _MEANINGS.get(text.partition("/")[0], "")
    if roof.unknown:
        meaning += f"; peak rates are not known for: {', '.join(roof.unknown)}"
    if text == _BOUND:
        return MetricValues(text, Aggregation.PROPERTY, roof.bounds(), roof.valid, meaning)
    if text == _DISTANCE:
        known = roof.valid & (roof.time_seconds > 0)
        values, valid = quotient(roof.time_seconds, roof.seconds, known)
        return MetricValues(text, Aggregation.PROPERTY, values, valid, meaning)
    if text == _INTENSITY:
        values, valid = quotient(roof.operations, roof.moved_bytes, roof.valid)
        return MetricValues(text, Aggregation.PROPERTY, values, valid, meaning)
    seconds = roof.seconds / SECONDS[text.partition("/")[2] or "s"]
    return MetricValues(text, Aggregation.INCLUSIVE, seconds, roof.valid, meaning)


# ``roof_distance`` is recorded time / attainable time: 1 at the roof. ``intensity`` is operations
# per byte.
ROOFLINE = DerivedMetric(
    re.compile("|".join((*_NAMES, _ROOF_TIME))), offered=_offered, values=_values
)


def roofline(profile: Profile) -> Roofline:
    """Return the roof of every row.

    Work given to a scope counts on the device of the rows below it, if there is only one.

    Raises:
        MetricError: Neither operations nor bytes were recorded, or no device's peaks are known.
    """
    work = {name: own for name in WORK if (own := own_values(profile, name)) is not None}
    if not work:
        raise no_work("a roofline")
    places = single_devices(profile)
    peaks = [roofline_peaks(device) for device in profile.devices]
    unknown = _unknown(profile, places, work=work, peaks=peaks)
    compute, memory = np.zeros(len(profile)), np.zeros(len(profile))
    for name, own in work.items():
        # The last entry answers for rows without a device, whose place is -1.
        cost = np.array([*(1.0 / p[name] if name in p else 0.0 for p in peaks), 0.0])
        (memory if name == "bytes" else compute)[:] += own * cost[places]
    seconds = np.maximum(compute, memory)
    has_work = seconds > 0
    flops = sum((own for name, own in work.items() if name != "bytes"), np.zeros(len(profile)))
    return Roofline(
        seconds=_total(profile, seconds),
        compute_seconds=_total(profile, np.where(compute >= memory, seconds, 0.0)),
        time_seconds=_total(
            profile, np.where(rows_below(has_work, profile.subtree_end), own_seconds(profile), 0.0)
        ),
        operations=_total(profile, np.where(has_work, flops, 0.0)),
        moved_bytes=_total(profile, np.where(has_work, work.get("bytes", 0.0), 0.0)),
        valid=_total(profile, has_work.astype(np.float64)) > 0,
        unknown=unknown,
    )


def roofline_peaks(device: Device) -> Mapping[str, float]:
    """Return the peak rates of a device: ``flops8`` to ``flops64`` and ``bytes``, in 1/s.

    Plugins come first. Upstream's rates, which ``util`` uses, differ for some devices.
    """
    return offered_peaks(device) or peak_rates(device)


def own_values(profile: Profile, name: str) -> Floats | None:
    """Return each row's own amount, 0 where there is none; None if it was not recorded."""
    full = find_metric(name, profile.columns)
    if full is None or not profile.columns[full].kind.is_number:
        return None
    column = profile.columns[full]
    usable = column.known & (column.values > 0)
    return np.where(usable, column.values, 0.0)


def own_seconds(profile: Profile) -> Floats:
    """Return each row's own time in seconds, 0 where there is none.

    Raises:
        MetricError: Times were not recorded.
    """
    full = find_metric("time", profile.columns)
    own = own_values(profile, "time")
    if full is None or own is None:
        raise MetricError("a roofline needs the time of kernels, which was not recorded")
    return own * SECONDS.get(MetricSpec(full).unit, SECONDS["ns"])


def _total(profile: Profile, own: Floats) -> Floats:
    running = np.zeros(len(own) + 1)
    np.cumsum(own, out=running[1:])
    total: Floats = np.maximum(running[profile.subtree_end] - running[:-1], 0.0)
    leaves = profile.subtree_end == np.arange(1, len(own) + 1)
    return np.where(leaves, own, total)


def single_devices(profile: Profile) -> Array:
    """Return the device of each row: its own, or the only one of the rows below; -1 for none."""
    own, parents = profile.device_rows.tolist(), profile.parents.tolist()
    places = list(own)
    for row in range(len(places) - 1, 0, -1):
        above = parents[row]
        if places[row] != _NONE and own[above] == _NONE:
            is_first = places[above] == _NONE
            places[above] = places[row] if is_first or places[above] == places[row] else _SEVERAL
    return np.maximum(np.array(places, dtype=np.int64), _NONE)


def _unknown(
    profile: Profile,
    places: Array,
    *,
    work: Mapping[str, Floats],
    peaks: list[Mapping[str, float]],
) -> tuple[str, ...]:
    """Return the devices with work but unknown peaks; raises if these are all."""
    busy = np.unique(places[sum(work.values(), np.zeros(len(profile))) > 0]).tolist()
    used = [place for place in busy if place >= 0] or range(len(peaks))
    lacking = [place for place in used if not set(peaks[place]) & set(work)]
    names = sorted({_name(profile.devices[place]) for place in lacking})
    if not busy or len(lacking) < len(used):
        return tuple(names)
    raise MetricError(
        f"a roofline needs peak rates, which are not known for: {', '.join(names) or 'no device'}; "
        f"known are {known_architectures()}. A plugin adds others with the hook "
        "proton_device_peaks: see docs/how-to/roofline.md"
    )


def _name(device: Device) -> str:
    name = f"{device.kind} {device.arch}".strip()
    is_known = architecture_rates(device) is not None
    return f"{name} (the file lacks its clocks, units or bus width)" if is_known else name

"""Where scopes stand in a roofline that name the work done in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.formula import FLOPS_WIDTHS, SECONDS, find_metric
from proton_bench.analysis.metrics.roofline import own_values, roofline_peaks, single_devices
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.profile import Profile
from proton_bench.report.html.plots.axes import scaled
from proton_bench.report.html.plots.points import PlottedKernel
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

__all__ = ["plotted_scopes", "scopes_without_bytes"]

_WIDTHS = tuple(f"flops{width}" for width in FLOPS_WIDTHS)
# Of work below a scope, or of the scope itself.
_TIMES = ("time", "cpu_time")
_MAX_NAME = 120

Floats = npt.NDArray[np.float64]


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
    first = visible(next(iter(names)), _MAX_NAME)
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


def _are_scopes(profile: Profile) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = profile.kinds == FrameKind.SCOPE
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

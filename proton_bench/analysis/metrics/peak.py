"""Peak rates of the devices of a profile, and how long its work takes at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.formula import FLOPS_WIDTHS, find_metric
from proton_bench.analysis.metrics.peak_rates import peak_rates
from proton_bench.errors import MetricError, UsageError
from proton_bench.model.device import Device
from proton_bench.model.profile import Profile
from proton_bench.plugin.others import offered_by_others
from proton_bench.specs import max_bps, max_flops

__all__ = ["WORK", "device_peaks", "least_seconds", "no_work", "offered_peaks"]

WORK = ("bytes", *(f"flops{width}" for width in FLOPS_WIDTHS))


def offered_peaks(device: Device) -> Mapping[str, float]:
    """Return the peak rates of plugins for a device, if any."""
    offered = offered_by_others("proton_device_peaks")
    found: Mapping[str, float] = offered.get((device.kind, device.arch), {})
    return found


def device_peaks(device: Device) -> Mapping[str, float]:
    """Return the peak rates of a device: ``flops8`` to ``flops64`` and ``bytes``, in 1/s.

    Plugins come first, then upstream's rates, so that ``util`` equals upstream's; the rates of the
    roofline are for architectures that upstream lacks. The result is empty for an unknown device.
    """
    offered = offered_peaks(device)
    if offered:
        return offered
    units, clock = device.num_sms, device.clock_rate_khz
    try:
        peaks = {
            f"flops{width}": max_flops(device.kind, device.arch, width, units, clock)
            for width in FLOPS_WIDTHS
        }
        memory_clock = device.memory_clock_rate_khz
        peaks["bytes"] = max_bps(device.kind, device.arch, device.bus_width_bits, memory_clock)
    except UsageError:
        return peak_rates(device)
    return {name: rate for name, rate in peaks.items() if rate > 0}


def least_seconds(profile: Profile) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the least time of each row's own work, and which rows ran on a known device.

    That is the larger of the sum of flops<width> / peak of the width, and of bytes / bandwidth.

    Raises:
        MetricError: The peak rates of no device are known, or neither operations nor bytes.
    """
    peaks = [device_peaks(device) for device in profile.devices]
    if not any(peaks):
        devices = ", ".join(f"{d.kind} {d.arch}".strip() for d in profile.devices) or "no device"
        raise MetricError(f"metric 'util' needs peak rates, which are not known for: {devices}")
    if all(find_metric(name, profile.columns) is None for name in WORK):
        raise no_work("metric 'util'")
    flops = sum(
        (_seconds_of(profile, f"flops{width}", peaks) for width in FLOPS_WIDTHS),
        start=np.zeros(len(profile)),
    )
    moved = _seconds_of(profile, "bytes", peaks)
    known = np.array([*map(bool, peaks), False])[profile.device_rows]
    return np.maximum(flops, moved), known


def no_work(what: str) -> MetricError:
    """Return the error to raise for what needs `WORK` of a profile that has none."""
    return MetricError(
        f"{what} needs operations or bytes of kernels, and none of {', '.join(WORK)} was recorded: "
        "give them as metrics of scopes or by launch_metadata with -k triton"
    )


def _seconds_of(
    profile: Profile, name: str, peaks: Sequence[Mapping[str, float]]
) -> npt.NDArray[np.float64]:
    """Return the time of each row's own amount at the peak rate; 0 if it has none."""
    full = find_metric(name, profile.columns)
    if full is None or not profile.columns[full].kind.is_number:
        return np.zeros(len(profile))
    column = profile.columns[full]
    # The last entry answers for rows without a device, whose position is -1.
    seconds_per_one = np.array([*(1.0 / p[name] if name in p else 0.0 for p in peaks), 0.0])
    own = np.where(column.known, column.values, 0.0)
    result: npt.NDArray[np.float64] = own * seconds_per_one[profile.device_rows]
    return result

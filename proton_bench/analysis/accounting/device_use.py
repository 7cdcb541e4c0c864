"""Busy, idle and waiting time of devices and launch latency, as metrics of rows and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.profile import Profile

DEVICE_WALL = "gpu_wall (ns)"

SAMPLED = "launches waited to be sampled"

_ONE_BY_ONE = {"exact=launch", "exact=scope"}
_LATENCY_SUM = "launch_latency_sum (ns)"
_LATENCY_COUNT = "launch_latency_count"
_LATENCY = MetricSpec("launch_latency (ns)", Aggregation.PROPERTY)
_TIMES = {
    "gpu_busy (ns)": "busy_ns",
    "gpu_idle (ns)": "idle_ns",
    "gpu_waiting (ns)": "waiting_ns",
    DEVICE_WALL: "wall_ns",
}
# A device that is idle this long in short gaps, and whose kernels start this soon after their
# launch, waits for the host: there is no queue, in which each kernel would wait for earlier ones.
_IDLE_SHARE = 0.1
SOON_NS = 50_000
_WAITING_SHARE = 0.2
# Of the kernels; where more of them start before their launch, clocks differ by more than what the
# latencies of the others are.
_MOST_BEFORE_LAUNCH = 0.05


def runs_on_devices(profile: Profile) -> bool:
    """Return whether work on a device was recorded, so that times are those of the device."""
    return bool(profile.device_use) or any(device.kind != "CPU" for device in profile.devices)


def with_device_use(profile: Profile) -> Profile:
    """Return the profile with columns for the use of its devices.

    ``gpu_busy``, ``gpu_idle``, ``gpu_waiting`` and ``gpu_wall`` (ns) are on the root and on
    top-level scopes, summed over devices; ``launch_latency`` (ns) is the mean over all kernels
    below a row. A recorded metric of one of these names stays as it is.
    """
    columns = {column.spec.name: column for column in _columns(profile)}
    fresh = {name: column for name, column in columns.items() if name not in profile.columns}
    if not fresh:
        return profile
    return replace(profile, columns={**profile.columns, **fresh})


def is_device_time(metric: str) -> bool:
    """Return whether a metric is a part of ``gpu_wall``, so that its share is relative to that."""
    return metric in _TIMES


def _columns(profile: Profile) -> Iterator[MetricColumn]:
    if profile.device_use:
        rows = _rows_of_scopes(profile)
        for name, attribute in _TIMES.items():
            yield _time_column(profile, rows, name, attribute=attribute)
    sums, counts = profile.columns.get(_LATENCY_SUM), profile.columns.get(_LATENCY_COUNT)
    if sums and counts and sums.kind.is_number and counts.kind.is_number:
        total, launches = profile.inclusive(_LATENCY_SUM), profile.inclusive(_LATENCY_COUNT)
        known = launches > 0
        mean = np.zeros(len(profile), dtype="<f8")
        np.divide(total, launches, out=mean, where=known)
        yield MetricColumn(_LATENCY, ValueKind.FLOAT, mean, known)


def _rows_of_scopes(profile: Profile) -> dict[str | None, int]:
    """Return the row of the whole profile (None) and of each scope right below it."""
    rows: dict[str | None, int] = {None: 0}
    for row in profile.children(0):
        if profile.kind(row) not in {FrameKind.KERNEL, FrameKind.COPY}:
            rows.setdefault(profile.name(row), row)
    return rows


def _time_column(
    profile: Profile, rows: dict[str | None, int], name: str, *, attribute: str
) -> MetricColumn:
    values = np.zeros(len(profile), dtype="<i8")
    valid = np.zeros(len(profile), dtype=np.bool_)
    for use in profile.device_use:
        row = rows.get(use.scope)
        if row is not None:
            values[row] += min(getattr(use, attribute), 2**63 - 1 - int(values[row]))
            valid[row] = True
    return MetricColumn(MetricSpec(name, Aggregation.PROPERTY), ValueKind.INT, values, valid)


@dataclass(frozen=True, slots=True)
class DeviceVerdict:
    """The verdict on the use of one device.

    Attributes:
        device: "CUDA:0" and the like.
        use: The underlying numbers.
        latency_ns: Median launch latency in ns, None if unknown.
        reason: Why the device was not busier: `SAMPLED`, "launch-bound", "waits for other devices",
            or "".
    """

    device: str
    use: DeviceUse
    latency_ns: float | None
    reason: str


def samples_one_by_one(profile: Profile) -> bool:
    """Return whether launches waited for each other to be sampled, so that devices idled for us."""
    modes = profile.provenance.get("mode")
    name, _, options = modes.partition(":") if isinstance(modes, str) else ("", "", "")
    return name == "pcsampling" and not _ONE_BY_ONE.isdisjoint(options.split(":"))


def device_verdicts(profile: Profile) -> tuple[DeviceVerdict, ...]:
    """Return one verdict for each used device."""
    return tuple(
        _verdict(profile, use) for use in profile.device_use if use.scope is None and use.wall_ns
    )


def _verdict(profile: Profile, use: DeviceUse) -> DeviceVerdict:
    device = profile.devices[use.device]
    is_trusted = use.latency_clamped <= _MOST_BEFORE_LAUNCH * use.launches
    latency_ns = use.latency_ns(0.5) if is_trusted else None
    reason = ""
    if samples_one_by_one(profile):
        reason = SAMPLED
    elif use.waiting_ns >= _WAITING_SHARE * use.wall_ns:
        reason = "waits for other devices"
    elif (
        use.short_idle_ns >= _IDLE_SHARE * use.wall_ns
        and latency_ns is not None
        and latency_ns <= SOON_NS
    ):
        reason = "launch-bound"
    return DeviceVerdict(f"{device.kind}:{device.index}", use, latency_ns, reason)

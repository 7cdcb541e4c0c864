"""Busy and idle time of devices, in total and for each top-level scope."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from proton_bench.errors import ProfileFormatError

LONG_IDLE_NS = 1_000_000

_PER_OCTAVE = 8
_MAX_BUCKETS = 512  # 64 octaves: no int64 lies beyond
_MOST = 2**63 - 1
_SUMMED = (
    *("busy_ns", "idle_ns", "long_idle_ns", "waiting_ns", "uncertain_ns"),
    *("launches", "latency_clamped", "latency_sum_ns"),
)


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """One device's time for the whole profile or for one top-level scope.

    Attributes:
        scope: Name of the top-level scope, None for the whole profile.
        device: Position in the profile's ``devices``.
        busy_ns: Time in which something ran: the union of all work.
        idle_ns: Time in which nothing ran before work of this scope.
            Begins with the first launch; pauses of the session are left out.
        long_idle_ns: Part of it in gaps of `LONG_IDLE_NS` and more: no launch came late, the host
            did something else. 0 in files of earlier versions.
        waiting_ns: Part of ``busy_ns`` in which only kernels that wait for other devices (NCCL)
            ran.
        uncertain_ns: At most this much more was busy, and less idle, because records came too late.
        launches: Kernels with a known launch time.
        latency_clamped: Kernels that started before their launch, or over an hour after it: the
            clocks disagree. They are not among ``launches``.
        latency_sum_ns: Sum over ``launches`` of the time from launch call to start.
        latency_min_ns: Smallest of them.
        latency_max_ns: Largest of them.
        latency_first_bucket: Number of the first of ``latency_buckets``.
        latency_buckets: Launches per bucket. Bucket i below 8 holds the latency i; from there on
            eight buckets of equal width share an octave.
    """

    scope: str | None
    device: int
    busy_ns: int = 0
    idle_ns: int = 0
    long_idle_ns: int = 0
    waiting_ns: int = 0
    uncertain_ns: int = 0
    launches: int = 0
    latency_clamped: int = 0
    latency_sum_ns: int = 0
    latency_min_ns: int = 0
    latency_max_ns: int = 0
    latency_first_bucket: int = 0
    latency_buckets: tuple[int, ...] = ()

    @property
    def wall_ns(self) -> int:
        """Busy and idle time together."""
        return self.busy_ns + self.idle_ns

    @property
    def short_idle_ns(self) -> int:
        """Idle time in gaps below `LONG_IDLE_NS`, which may be those of late launches."""
        return max(self.idle_ns - self.long_idle_ns, 0)

    def latency_ns(self, quantile: float) -> float | None:
        """Return a quantile (0 to 1) of the launch latency in ns; None without launches.

        It is the middle of its bucket, off by at most 6 %.
        """
        wanted = quantile * sum(self.latency_buckets)
        seen = 0
        for number, count in enumerate(self.latency_buckets, self.latency_first_bucket):
            seen += count
            if seen and seen >= wanted:
                return min(max(_middle(number), self.latency_min_ns), self.latency_max_ns)
        return None

    def self_check(self, devices: int) -> None:
        """Raise ProfileFormatError unless this fits a profile with that many devices."""
        if not 0 <= self.device < devices:
            raise ProfileFormatError(f"device_use names device {self.device} of {devices}")
        numbers = (*_numbers(self), *self.latency_buckets)
        if min(numbers) < 0 or max(numbers) > _MOST:
            raise ProfileFormatError("device_use has a number that cannot be a time or count")
        if self.latency_first_bucket + len(self.latency_buckets) > _MAX_BUCKETS:
            raise ProfileFormatError("device_use has more latency buckets than there are")


def combine_uses(uses: Iterable[DeviceUse]) -> tuple[DeviceUse, ...]:
    """Return one use per scope and device, in order of first appearance: times are summed."""
    found: dict[tuple[str | None, int], DeviceUse] = {}
    for use in uses:
        key = (use.scope, use.device)
        found[key] = _sum(found[key], use) if key in found else use
    return tuple(found.values())


def latency_bucket(latency_ns: int) -> int:
    """Return the number of the bucket of a latency, which is 0 or more."""
    if latency_ns < _PER_OCTAVE:
        return latency_ns
    octave = latency_ns.bit_length() - 1
    return (octave - 2) * _PER_OCTAVE + (latency_ns >> (octave - 3)) % _PER_OCTAVE


def _numbers(use: DeviceUse) -> tuple[int, ...]:
    extremes = (use.latency_min_ns, use.latency_max_ns, use.latency_first_bucket)
    return (*(getattr(use, name) for name in _SUMMED), *extremes)


def _sum(left: DeviceUse, right: DeviceUse) -> DeviceUse:
    known = [use for use in (left, right) if use.launches]
    first, buckets = _joined_buckets([use for use in (left, right) if use.latency_buckets])
    sums = {name: min(getattr(left, name) + getattr(right, name), _MOST) for name in _SUMMED}
    return replace(
        left,
        latency_min_ns=min((use.latency_min_ns for use in known), default=0),
        latency_max_ns=max((use.latency_max_ns for use in known), default=0),
        latency_first_bucket=first,
        latency_buckets=buckets,
        **sums,
    )


def _joined_buckets(uses: list[DeviceUse]) -> tuple[int, tuple[int, ...]]:
    if not uses:
        return 0, ()
    first = min(use.latency_first_bucket for use in uses)
    end = max(use.latency_first_bucket + len(use.latency_buckets) for use in uses)
    counts = [0] * (end - first)
    for use in uses:
        for place, count in enumerate(use.latency_buckets, use.latency_first_bucket - first):
            counts[place] += count
    return first, tuple(counts)


def _middle(bucket: int) -> float:
    if bucket < _PER_OCTAVE:
        return float(bucket)
    octave, step = divmod(bucket, _PER_OCTAVE)
    width = 2.0 ** (octave - 1)
    return (_PER_OCTAVE + step + 0.5) * width

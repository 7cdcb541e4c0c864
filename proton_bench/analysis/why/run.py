"""A run as the findings see it: its time, that of its devices, and its rows with verdicts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.accounting.compilation import Compilation, compilation_of, outermost
from proton_bench.analysis.accounting.device_use import (
    DeviceVerdict,
    device_verdicts,
    samples_one_by_one,
)
from proton_bench.analysis.accounting.host_time import (
    RunTime,
    run_time_of,
    with_measured_times,
)
from proton_bench.analysis.accounting.input_time import InputTime, input_time_of
from proton_bench.analysis.accounting.own_cost import own_cost
from proton_bench.analysis.naming.readable import Readable, folded
from proton_bench.analysis.view.names import with_stable_names
from proton_bench.analysis.view.select import drop_metadata, drop_trials
from proton_bench.analysis.why.launch_facts import with_launch_facts
from proton_bench.analysis.why.verdicts import Verdicts
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.profile import Profile
from proton_bench.model.steps import HOST_WALL, length_word, steps_in

# Operators and calls that wait for the device.
SYNC_OPS = frozenset(
    {
        *("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::nonzero"),
        *("aten::equal", "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"),
    }
)
# Calls that take memory from the driver, or give it back, which waits for the device.
MEMORY_CALLS = frozenset(
    {
        *("cuMemAlloc", "cuMemAllocPitch", "cuMemAllocManaged", "cuMemFree", "cuMemCreate"),
        *("cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemHostAlloc"),
        *("cuMemAllocHost", "cuMemFreeHost", "cuMemHostRegister", "cuMemHostUnregister"),
        *("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost", "cudaMallocHost"),
    }
)
# These wait if they copy to the host.
_MAY_WAIT = SYNC_OPS | MEMORY_CALLS | {"aten::copy_", "aten::_to_copy"}
_MOST_QUEUED = 800.0  # launches on average; CUDA queues at most 1024
_STANDARD_ERRORS = 2.0
_COST_ERROR = 1.5  # the estimate of our own cost may be too small by this factor


def host_limit_ns(profile: Profile, device: DeviceVerdict, *, in_sync_ns: float) -> float:
    """Return the most that faster work of the only device can save in ns, infinity if unknown.

    Args:
        profile: The profile as it was recorded.
        device: Its device.
        in_sync_ns: Sampled time of the host in functions that wait for the device.
    """
    use, context = device.use, profile.provenance.get("context")
    if not most_sampled_ns(profile, 0.0):
        return math.inf
    if not isinstance(context, str) or "ops" not in context or not (use.launches and use.wall_ns):
        return math.inf
    if use.latency_max_ns * (use.launches / use.wall_ns) > _MOST_QUEUED:
        return math.inf
    waiting_ns = most_sampled_ns(profile, in_sync_ns + sampled_in_ns(profile, _MAY_WAIT))
    return waiting_ns + _COST_ERROR * idle_cost_ns(profile)


def most_sampled_ns(profile: Profile, sampled_ns: float) -> float:
    """Return what a sampled time of the host is at most in ns, 0 if the host was not sampled.

    That is two standard errors more. A sample counts for one period, and the standard error of a
    count is its square root.
    """
    period_ns = sample_period_ns(profile)
    if not period_ns:
        return 0.0
    return sampled_ns + _STANDARD_ERRORS * math.sqrt(max(sampled_ns, period_ns) * period_ns)


def sample_period_ns(profile: Profile) -> float:
    """Return for how long a sample of the host counts in ns, 0 if the host was not sampled."""
    rate_hz = profile.provenance.get("host_rate_hz")
    if not (isinstance(rate_hz, int | float) and rate_hz > 0 and HOST_WALL in profile.columns):
        return 0.0
    return 1e9 / rate_hz / steps_in(profile)


def idle_cost_ns(profile: Profile) -> float:
    """Return how much longer the host took because it was recorded, by the file, in ns."""
    cost = own_cost(profile)
    return cost.cost_ns if cost is not None else 0.0


def sampled_in_ns(profile: Profile, names: Collection[str]) -> float:
    """Return the sampled time of the host in operators, 0 if it was not sampled."""
    column = profile.columns.get(HOST_WALL)
    if column is None or not column.kind.is_number:
        return 0.0
    wall_ns = profile.inclusive(HOST_WALL)
    return sum(float(wall_ns[row]) for row in outermost(profile, names))


BACKWARD = "<backward>"
_DEFAULT = Readable()
_OWNERS = frozenset(
    {FrameKind.LAYER, FrameKind.SCOPE, FrameKind.PYTHON, FrameKind.TEST, FrameKind.ROOT}
)


@dataclass(frozen=True, slots=True, eq=False)
class WholeRun:
    """A run with what its findings need.

    Attributes:
        recorded: The profile as it was recorded.
        profile: The same with equal layers, library frames and variants folded, as views show it.
        verdicts: The verdicts of its rows.
        times: Where the time of the run went.
        devices: The use of each device.
        compilation: How long code was compiled.
        inputs: How long the host read batches of DataLoaders.
        owners: For each row the layer, scope or frame above it, and whether it runs backward.
    """

    recorded: Profile
    profile: Profile
    verdicts: Verdicts
    times: RunTime
    devices: tuple[DeviceVerdict, ...]
    compilation: Compilation
    inputs: InputTime
    owners: Sequence[tuple[int, bool]]

    @classmethod
    def of(cls, profile: Profile, readable: Readable = _DEFAULT) -> WholeRun:
        """Return the run of a profile, with the rows that a view of it has."""
        profile = with_measured_times(profile)
        shown = drop_trials(drop_metadata(with_launch_facts(profile)))
        shown = folded(with_stable_names(shown), readable).fold_variants()
        verdicts = Verdicts(shown)
        times, devices = run_time_of(profile), device_verdicts(profile)
        return cls(
            profile,
            shown,
            verdicts,
            times,
            devices,
            compilation_of(profile),
            input_time_of(profile),
            _owners(shown),
        )

    @property
    def span_ns(self) -> float:
        """How long the run took, or what is known of it."""
        return self.verdicts.run_ns

    @property
    def word(self) -> str:
        """What the length is that of: a run, or one of its steps."""
        return length_word(self.recorded)

    @property
    def is_length_known(self) -> bool:
        """Whether `span_ns` is that of the run or of its devices, not the sum of all work."""
        return self.times.wall_ns is not None or bool(self.devices)

    @property
    def is_idle_known(self) -> bool:
        """Whether it is known for how long no device worked."""
        return self.times.gpu_idle_ns is not None or bool(self.devices)

    @property
    def idle_ns(self) -> float:
        """Time in which no device worked, not more than the run; 0 if unknown."""
        sampled_ns = self.times.gpu_idle_ns
        # Without the length of the run, what is known of it begins with the first launch.
        if sampled_ns is None or (self.devices and self.times.wall_ns is None):
            return min(self._least(device.use.idle_ns for device in self.devices), self.span_ns)
        return min(float(sampled_ns), self.span_ns) if self.is_length_known else float(sampled_ns)

    @property
    def between_ns(self) -> float:
        """The part of it between kernels that is the program's, without what recording took.

        It is 0 if launches waited to be sampled. Of several devices it is the shortest, because at
        most so long all of them were idle.
        """
        return 0.0 if self.is_one_by_one else self._gaps_ns - self.recording_ns

    @property
    def open_ns(self) -> float:
        """The part of `between_ns` in which nothing was compiled."""
        return max(self.between_ns - self.compilation.idle_ns, 0.0)

    def short_gaps_ns(self, use: DeviceUse) -> float:
        """Return the part of `between_ns` that late launches on a device may have caused."""
        cost_ns = idle_cost_ns(self.recorded) / max(len(self.devices), 1)
        return min(max(use.short_idle_ns - cost_ns, 0.0), self.between_ns)

    def most(self, times_ns: Iterable[float]) -> float:
        """Return the largest of the times of each device; of merged processes their sum."""
        found = list(times_ns)
        return sum(found) * self.per_device if self._processes > 1 else max(found, default=0.0)

    def _least(self, times_ns: Iterable[float]) -> float:
        found = list(times_ns)
        return sum(found) * self.per_device if self._processes > 1 else min(found, default=0.0)

    @property
    def per_device(self) -> float:
        """What part of the time of each device is time of the run.

        Processes that were merged ran side by side, but their times are added up.
        """
        return min(self._processes / max(len(self.devices), 1), 1.0)

    @property
    def _processes(self) -> int:
        parts = self.recorded.provenance.get("parts")
        return len(parts) if isinstance(parts, tuple) and parts else 1

    @property
    def is_one_by_one(self) -> bool:
        """Whether launches waited to be sampled."""
        return samples_one_by_one(self.recorded)

    @property
    def outside_ns(self) -> float:
        """The part of it before the first work and after the last; 0 if unknown."""
        is_told = bool(self.devices) and self.per_device == 1.0
        return self.idle_ns - self._gaps_ns if is_told else 0.0

    @property
    def recording_ns(self) -> float:
        """The part of it between kernels that recording took."""
        return min(idle_cost_ns(self.recorded) * self.per_device, self._gaps_ns)

    @property
    def _gaps_ns(self) -> float:
        return min(self._least(device.use.idle_ns for device in self.devices), self.idle_ns)

    @property
    def work_ns(self) -> float:
        """Time of all work, summed over devices and streams."""
        return float(self.verdicts.time_ns[0])


def _owners(profile: Profile) -> list[tuple[int, bool]]:
    """Return for each row the layer, scope or frame above it, and whether it runs backward.

    It is row 0 if there is none.
    """
    found = [(0, False)] * len(profile)
    is_owner = np.isin(profile.kinds, [int(kind) for kind in _OWNERS]).tolist()
    is_backward = [text == BACKWARD for text in profile.strings]
    frames: list[int] = profile.frames.tolist()
    for row, above in enumerate(profile.parents.tolist()):
        if above < 0:
            continue
        if is_backward[frames[above]]:
            found[row] = (found[above][0], True)
        else:
            found[row] = (above, False) if is_owner[above] else found[above]
    return found

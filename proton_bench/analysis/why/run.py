"""A run as the findings see it: its time, that of its devices, and its rows with verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.accounting.device_use import (
    DeviceVerdict,
    device_verdicts,
    samples_one_by_one,
)
from proton_bench.analysis.accounting.host_time import RunTime, run_time_of, with_measured_times
from proton_bench.analysis.naming.readable import Readable, folded
from proton_bench.analysis.view.names import with_stable_names
from proton_bench.analysis.view.select import drop_metadata, drop_trials
from proton_bench.analysis.why.compilation import Compilation, compilation_of
from proton_bench.analysis.why.host_limit import idle_cost_ns
from proton_bench.analysis.why.launch_facts import with_launch_facts
from proton_bench.analysis.why.verdicts import Verdicts
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.profile import Profile

__all__ = ["BACKWARD", "WholeRun"]

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
        owners: For each row the layer, scope or frame above it, and whether it runs backward.
    """

    recorded: Profile
    profile: Profile
    verdicts: Verdicts
    times: RunTime
    devices: tuple[DeviceVerdict, ...]
    compilation: Compilation
    owners: Sequence[tuple[int, bool]]

    @classmethod
    def of(cls, profile: Profile, readable: Readable = _DEFAULT) -> WholeRun:
        """Return the run of a profile, with the rows that a view of it has."""
        profile = with_measured_times(profile)
        shown = drop_trials(drop_metadata(with_launch_facts(profile)))
        shown = folded(with_stable_names(shown), readable).fold_variants()
        verdicts = Verdicts(shown)
        times, devices = run_time_of(profile), device_verdicts(profile)
        compilation = compilation_of(profile)
        return cls(profile, shown, verdicts, times, devices, compilation, _owners(shown))

    @property
    def span_ns(self) -> float:
        """How long the run took, or what is known of it."""
        return self.verdicts.run_ns

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

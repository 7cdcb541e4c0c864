"""The last seconds of a recording: the difference of two of its partial files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.naming.kernel_names import kernel_texts
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.wall_times import WALL, Values, spans_of
from proton_bench.model.profile import Profile

_TIME, _COUNT, _STEPS, _END = "time (ns)", "count", "steps_begun", "end_time_ns"
_WORK = (FrameKind.KERNEL, FrameKind.COPY, FrameKind.GRAPH, FrameKind.OP)
_BACKWARD = "<backward>"  # below the layer whose gradients it computes
_NUMBER = re.compile(r"\b\d+\b")


@dataclass(frozen=True, slots=True)
class Work:
    """What ran in the last seconds under one name.

    Attributes:
        name: Name of a kernel, layer or scope; in the last two ``*`` stands for numbers.
        time_ns: Time, of a layer without layers inside.
        count: How often it ran; of a layer what ran in it.
    """

    name: str
    time_ns: float
    count: float


@dataclass(frozen=True, slots=True)
class LastSeconds:
    """What a program did between two moments.

    Attributes:
        begin_ns: Unix time of the first.
        end_ns: Unix time of the second, in ns.
        busy: Share of the time in which each device was busy, by its name.
        steps: How many steps began; None if none are known.
        kernels: Kernels, copies and operators, those with the longest time first.
        layers: Layers, or scopes where there are no layers, likewise.
    """

    begin_ns: int
    end_ns: int
    busy: Mapping[str, float]
    steps: int | None
    kernels: tuple[Work, ...]
    layers: tuple[Work, ...]

    @property
    def length_ns(self) -> int:
        """Time between the two."""
        return self.end_ns - self.begin_ns

    @property
    def has_length(self) -> bool:
        """Whether the two are moments of different files."""
        return self.length_ns > 1

    @property
    def steps_per_second(self) -> float | None:
        """Rate of steps, None if none are known."""
        return None if self.steps is None else self.steps * 1e9 / self.length_ns


def written_at(profile: Profile) -> int:
    """Return when a partial file was written, as unix time in ns; 0 if it does not say."""
    found = profile.provenance.get(_END)
    return found if type(found) is int else 0


def last_seconds(before: Profile, after: Profile) -> LastSeconds:
    """Return what was recorded from one partial file to a later one of the same recording."""
    begin_ns, end_ns = written_at(before), max(written_at(after), written_at(before) + 1)
    # Where nothing but scopes or operators is recorded, their elapsed times are all there is.
    metric = _TIME if after.has_numbers(_TIME) else WALL
    earlier, later = _own_times(before, metric), _own_times(after, metric)
    kernels = _difference(_by_kernel(before, earlier), _by_kernel(after, later))
    texts, busy_before = kernel_texts(kernels), _busy(before)
    return LastSeconds(
        begin_ns=begin_ns,
        end_ns=end_ns,
        busy={
            name: min((busy_ns - busy_before.get(name, 0)) / (end_ns - begin_ns), 1.0)
            for name, busy_ns in _busy(after).items()
        },
        steps=max(_steps(after) - _steps(before), 0) if _steps(after) else None,
        kernels=_longest({texts.get(name, name): each for name, each in kernels.items()}),
        layers=_longest(_difference(_by_layer(before, earlier), _by_layer(after, later))),
    )


def _steps(profile: Profile) -> int:
    found = profile.provenance.get(_STEPS)
    return found if type(found) is int else 0


_Sums = dict[str, tuple[float, float]]  # time and count by name


def _by_kernel(profile: Profile, times: Values) -> _Sums:
    names = [profile.name(row) if profile.kind(row) in _WORK else "" for row in range(len(profile))]
    return _summed(profile, names, times)


def _by_layer(profile: Profile, times: Values) -> _Sums:
    """Return the work of each row by the layers around it, or scopes where there are no layers."""
    has_layers = bool((profile.kinds == FrameKind.LAYER).any())
    kind = FrameKind.LAYER if has_layers else FrameKind.SCOPE
    names = [""] * len(profile)
    for row in range(1, len(profile)):
        names[row] = above = names[profile.parents[row]]
        if profile.kind(row) is kind:
            own = _NUMBER.sub("*", profile.name(row))
            # The name of a layer is its path, that of a scope is not.
            is_path = has_layers and own != _BACKWARD
            names[row] = own if is_path or not above else f"{above}/{own}"
    return _summed(profile, names, times)


def _summed(profile: Profile, names: list[str], times: Values) -> _Sums:
    counts = _values(profile, _COUNT)
    found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in np.flatnonzero(times > 0).tolist():
        if names[row]:
            found[names[row]][0] += float(times[row])
            found[names[row]][1] += float(counts[row])
    return {name: (time, count) for name, (time, count) in found.items()}


def _own_times(profile: Profile, metric: str) -> Values:
    is_wall = metric == WALL and profile.has_numbers(WALL)
    return spans_of(profile, profile.columns[WALL]).own if is_wall else _values(profile, metric)


def _values(profile: Profile, metric: str) -> Values:
    if not profile.has_numbers(metric):
        return np.zeros(len(profile))
    column = profile.columns[metric]
    return np.where(column.valid, column.values, 0).astype(np.float64)


def _difference(before: _Sums, after: _Sums) -> _Sums:
    found = {}
    for name, (time, count) in after.items():
        earlier_time, earlier_count = before.get(name, (0.0, 0.0))
        if time > earlier_time:
            found[name] = time - earlier_time, count - earlier_count
    return found


def _longest(sums: _Sums) -> tuple[Work, ...]:
    found = [Work(name, time, count) for name, (time, count) in sums.items()]
    return tuple(sorted(found, key=lambda each: -each.time_ns))


def _busy(profile: Profile) -> dict[str, int]:
    found = {}
    for use in profile.device_use:
        if use.scope is None:
            device = profile.devices[use.device]
            found[f"{device.kind}:{device.index}"] = use.busy_ns
    return found

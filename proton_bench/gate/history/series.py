"""Series: the values of one path and metric on one machine, in order of time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.gate.history.points import Machine, Point, Subject
from proton_bench.gate.statistics.location import SHORT_NS

__all__ = ["Series", "SeriesKey", "series_of"]

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """What the points of a series have in common.

    Attributes:
        group: Name of a baseline, "" for files.
        path: Names from below the root, without line numbers and running numbers.
        occurrence: Which of several rows with this path it is.
        metric: As thresholds name it.
        unit: Unit of the values, "" for none.
        machine: Facts of machine and device.
        instead: What was measured in place of the metric, where other points have the metric
            itself; else "".
    """

    group: str
    path: tuple[str, ...]
    occurrence: int
    metric: str
    unit: str
    machine: Machine
    instead: str = ""

    @property
    def digest(self) -> str:
        """A short name of the key, the same for the same facts."""
        plain = [self.group, self.path, self.occurrence, self.metric, self.unit, self.machine]
        plain += [self.instead] if self.instead else []
        return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One series.

    Attributes:
        key: What its points have in common.
        metric: What was measured at all of them.
        points: Its points in order of time.
        values: Their values, in the unit of the key; all positive.
        direction: +1 if more is worse, -1 if less is, 0 if any change is.
        is_quarantined: Whether its steps never fail.
        share: Greatest share of the path in the time of a run.
        later: Points of its baseline and machine after its last one, which lack its values.
    """

    key: SeriesKey
    metric: str
    points: tuple[Point, ...]
    values: Numbers
    direction: int
    is_quarantined: bool
    share: float
    later: int

    def logarithms(self) -> Numbers:
        """Return the natural logarithms of the values."""
        found: Numbers = np.log(self.values)
        return found


def series_of(points: Iterable[Point], *, share: float) -> list[Series]:
    """Return the series of these points, the largest paths first.

    Points without a time stay behind the one that they follow.

    Args:
        points: In the order in which they were recorded, as far as it is known.
        share: Least share of a run's time that a path needs in any of its points.
    """
    found: dict[SeriesKey, list[Point]] = {}
    beside: dict[tuple[str, Machine], list[Point]] = {}
    for point in points:
        beside.setdefault((point.group, point.machine), []).append(point)
        for subject, value in point.values.items():
            instead = value.metric if value.metric != subject[2] else ""
            key = SeriesKey(point.group, *subject, value.unit, point.machine, instead)
            found.setdefault(key, []).append(point)
    left = {
        id(point): later
        for own in beside.values()
        for later, point in enumerate(reversed(_in_order(own)))
    }
    found = {_plain(key, found): own for key, own in found.items()}
    every = [_series(key, _in_order(own), left) for key, own in found.items()]
    chosen = [each for each in every if each.share >= share]
    return sorted(chosen, key=lambda each: (-each.share, each.key.path, each.key.occurrence))


def _plain(key: SeriesKey, known: Container[SeriesKey]) -> SeriesKey:
    """Return the key of the only series of a path and metric, whatever was measured for it."""
    plain = replace(key, instead="")
    return key if plain in known else plain


def _in_order(points: list[Point]) -> list[Point]:
    times = [point.time_ns for point in points]
    latest = next((time for time in times if time is not None), 0)
    ordered = []
    for place, time in enumerate(times):
        latest = latest if time is None else time
        ordered.append((latest, place))
    return [points[place] for _, place in sorted(ordered)]


def _series(key: SeriesKey, points: Sequence[Point], left: Mapping[int, int]) -> Series:
    """Return a series; `left` has how many points follow each one, by its `id`."""
    subject: Subject = (key.path, key.occurrence, key.metric)
    own = [point.values[subject] for point in points]
    last = own[-1]
    values = np.array([each.value for each in own])
    if key.unit == "ns" and last.metric == "median" and values.min() < SHORT_NS:
        values = np.array([each.as_short for each in own])
    return Series(
        key=key,
        metric=last.metric,
        points=tuple(points),
        values=values,
        direction=last.direction,
        is_quarantined=last.is_quarantined,
        share=max(each.share for each in own),
        later=left[id(points[-1])],
    )

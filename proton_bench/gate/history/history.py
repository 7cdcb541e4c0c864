"""The history of a program: its series, their steps, and which of them are not acknowledged."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.gate.baselines import check_plain
from proton_bench.gate.history.divisive import FEWEST_POINTS, fewest_after
from proton_bench.gate.history.points import Machine, Point, RowKey
from proton_bench.gate.history.steps import Step, find_steps, shift_between
from proton_bench.gate.policy import Policy
from proton_bench.gate.statistics.location import SHORT_NS
from proton_bench.gate.verdict.result import SuiteVerdict
from proton_bench.model.arrays import Floats
from proton_bench.support.files import write_file
from proton_bench.support.inputs import read_file
from proton_bench.support.text import visible


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
    values: Floats
    direction: int
    is_quarantined: bool
    share: float
    later: int

    def logarithms(self) -> Floats:
        """Return the natural logarithms of the values."""
        found: Floats = np.log(self.values)
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
        for key_of_row, value in point.values.items():
            instead = value.metric if value.metric != key_of_row[2] else ""
            key = SeriesKey(point.group, *key_of_row, value.unit, point.machine, instead)
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
    key_of_row: RowKey = (key.path, key.occurrence, key.metric)
    own = [point.values[key_of_row] for point in points]
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


# False discovery rate of steps over all series of a history.
LEVEL = 0.01
# Later steps took a step back if they left less than this part of it, and not certainly as much as
# this share: half of what a gate finds unless its policy says otherwise.
_LEFT_PART, _LEFT = 0.5, 0.015


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The acknowledged steps of one series.

    Attributes:
        series: Digest of the series' key.
        path: Path of the series, for people.
        metric: Its metric, for people.
        until_ns: Steps that begin later, in ns since 1970, are not acknowledged.
        by: Who acknowledged them: user and machine.
        at_ns: When, in ns since 1970.
        revision: Git revision of the newest point of the series then, "" if unknown.
    """

    series: str
    path: tuple[str, ...]
    metric: str
    until_ns: int
    by: str
    at_ns: int
    revision: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One series with its steps.

    Attributes:
        series: The series.
        steps: Its steps in order of time.
        acknowledged: The last acknowledgement of its steps, None if there is none.
    """

    series: Series
    steps: tuple[Step, ...]
    acknowledged: Acknowledgement | None = None

    @property
    def levels(self) -> tuple[float, ...]:
        """The geometric medians of the values before, between and after the steps."""
        return tuple(float(np.exp(np.median(part))) for part in self._parts)

    @property
    def _parts(self) -> list[Floats]:
        """The logarithms of the values before, between and after the steps."""
        return np.split(self.series.logarithms(), [step.at for step in self.steps])

    @property
    def change(self) -> float:
        """The change from the first level to the last one, as a share of the first."""
        return self.levels[-1] / self.levels[0] - 1.0

    @property
    def failing(self) -> tuple[Step, ...]:
        """The steps that are worse, not acknowledged and not taken back by later ones."""
        if self.series.is_quarantined:
            return ()
        parts = self._parts
        return tuple(
            step
            for step, before in zip(self.steps, parts, strict=False)
            if self._worse(step.change) > 0.0
            and not self.is_acknowledged(step)
            and self._is_left(step, before, parts[-1])
        )

    def _is_left(self, step: Step, before: Floats, now: Floats) -> bool:
        change, *ends = shift_between(before, now)
        certain = min(map(self._worse, ends))
        return self._worse(change) >= _LEFT_PART * abs(step.change) or certain >= math.log1p(_LEFT)

    @property
    def rise(self) -> float:
        """The change from before the first failing step to now, as a share; 0 without one."""
        if not self.failing:
            return 0.0
        return self.levels[-1] / self.levels[self.steps.index(self.failing[0])] - 1.0

    def _worse(self, change: float) -> float:
        direction = self.series.direction
        return abs(change) if direction == 0 else direction * change

    def is_acknowledged(self, step: Step) -> bool:
        """Return whether this step was acknowledged."""
        begin = self.series.points[step.at].time_ns
        known = self.acknowledged
        return known is not None and begin is not None and begin <= known.until_ns


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The history of a program.

    Attributes:
        traces: All series: those with failing steps, then others with steps, each by their change.
        level: False discovery rate.
        left_out: Why experiments are not part of it, by their names.
    """

    traces: tuple[Trace, ...]
    level: float
    left_out: Mapping[str, str]

    @property
    def failing(self) -> tuple[Trace, ...]:
        """The series with failing steps."""
        return tuple(trace for trace in self.traces if trace.failing)

    @property
    def points(self) -> int:
        """Points of the longest series."""
        return max((len(trace.series.points) for trace in self.traces), default=0)

    @property
    def fewest_after(self) -> int | None:
        """Points after a step of the longest series from which on it usually shows.

        None if no step can be found in so few points.
        """
        tested = sum(len(trace.series.points) >= FEWEST_POINTS for trace in self.traces)
        return fewest_after(self.points, tested, self.level)

    @property
    def enough_points(self) -> int:
        """Points that the longest series needs at least for a step to be found."""
        count = max(self.points, FEWEST_POINTS)
        while fewest_after(count, len(self.traces), self.level) is None:
            count += 1
        return count

    def with_acknowledged(self, new: Iterable[Acknowledgement]) -> History:
        """Return this history with more acknowledged steps."""
        known = {each.series: each for each in new}
        traces = [
            replace(each, acknowledged=known.get(each.series.key.digest, each.acknowledged))
            for each in self.traces
        ]
        return replace(self, traces=tuple(sorted(traces, key=_rank)))

    @property
    def verdict(self) -> SuiteVerdict:
        """FAIL for failing steps, NO-BASELINE if no step can be found in so few points."""
        if self.failing:
            return SuiteVerdict.FAIL
        has_steps = any(trace.steps for trace in self.traces)
        if not has_steps and self.fewest_after is None:
            return SuiteVerdict.NO_BASELINE
        return SuiteVerdict.PASS


def history_of(
    points: Iterable[Point],
    policy: Policy,
    *,
    acknowledged: Mapping[str, Acknowledgement],
    left_out: Mapping[str, str] | None = None,
) -> History:
    """Return the history in these points.

    Args:
        points: Experiments in the order in which they were recorded, as far as it is known.
        policy: The share of time from which paths count.
        acknowledged: Acknowledged steps by the digests of their series.
        left_out: Why experiments are not part of it, by their names.
    """
    series = series_of(points, share=policy.share)
    found = find_steps([each.logarithms() for each in series], level=LEVEL)
    traces = [
        Trace(each, steps, acknowledged.get(each.key.digest))
        for each, steps in zip(series, found, strict=True)
    ]
    return History(tuple(sorted(traces, key=_rank)), LEVEL, dict(left_out or {}))


def acknowledge(traces: Sequence[Trace], *, by: str, at_ns: int) -> list[Acknowledgement]:
    """Return the acknowledgement of every series that has a step which is not acknowledged.

    It holds up to the last point at which the newest step may begin, because more points can move
    a step within this range.

    Args:
        traces: The series.
        by: Who acknowledges.
        at_ns: When, in ns since 1970.

    Raises:
        UsageError: Points of such a series have no time.
    """
    found = []
    for trace in traces:
        new = [step for step in trace.steps if not trace.is_acknowledged(step)]
        if not new:
            continue
        points = trace.series.points
        last = points[new[-1].latest]
        if last.time_ns is None:
            raise UsageError(
                f"{last.source!a} does not say when it was recorded, so its steps "
                "cannot be acknowledged"
            )
        key = trace.series.key
        found.append(
            Acknowledgement(
                key.digest,
                key.path,
                trace.series.metric,
                last.time_ns,
                by,
                at_ns,
                points[-1].revision,
            )
        )
    return found


def _rank(trace: Trace) -> tuple[bool, bool, float]:
    return not trace.failing, not trace.steps, -abs(trace.rise if trace.failing else trace.change)


# -- acknowledged steps --------------------------------------------------------------------------
ACKNOWLEDGED_FILE = "acknowledged.json"
_SCHEMA = {"schema": "proton_bench.acknowledged", "version": [1, 0]}


def read_acknowledged(store: Path) -> dict[str, Acknowledgement]:
    """Return the acknowledged steps in a store of baselines by the digests of their series.

    Raises:
        ProfileFormatError: Their file is corrupt, or of an unknown version.
    """
    file = _acknowledged_file(store)
    try:
        document = msgspec.json.decode(read_file(file), type=dict[str, Any])
        if document["schema"] != _SCHEMA["schema"] or document["version"][0] != 1:
            raise ValueError("it is of another version")
        found = msgspec.convert(document["series"], list[Acknowledgement])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, LookupError, RecursionError) as error:
        raise ProfileFormatError(
            f"{visible(file)} cannot be read ({error}); remove it and acknowledge the steps again"
        ) from None
    return {each.series: each for each in found}


def write_acknowledged(store: Path, steps: Iterable[Acknowledgement]) -> None:
    """Add acknowledged steps; of each series the acknowledgement of the latest step stays.

    Raises:
        ProfileFormatError: The file with the earlier ones is corrupt.
        OutputError: It cannot be written.
    """
    known = read_acknowledged(store)
    for step in steps:
        if known.get(step.series, step).until_ns <= step.until_ns:
            known[step.series] = step
    document = {**_SCHEMA, "series": msgspec.to_builtins(list(known.values()))}
    store.mkdir(parents=True, exist_ok=True)
    write_file(_acknowledged_file(store), msgspec.json.format(msgspec.json.encode(document)))


def _acknowledged_file(store: Path) -> Path:
    file = store / ACKNOWLEDGED_FILE
    check_plain(store, file)
    return file

"""Wall times of host ranges: each row has all of its time, with that of the rows below it.

Their self times add up like any inclusive metric, so sums and shares are made of these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from proton_bench.model import preorder
from proton_bench.model.arrays import Floats, Indexes, Integers, Mask
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.profile import Profile

WALL = "wall (ns)"
_BASE = "wall"
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_TIME = "time"
_BACKWARD = "<backward>"  # the row of a layer's backward pass
_HOST = "CPU"

Values = Floats | Integers


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """What was measured of each row, in the unit of a column.

    Attributes:
        wall: Wall time, with that of the rows inside; 0 without one.
        work: Recorded time of an operator without a wall time, without operators inside.
        is_timed: Whether the row has a wall time.
        owners: The nearest row around it with a wall time, else the root.
    """

    wall: Values
    work: Values
    is_timed: Mask
    owners: Indexes

    def own(self) -> Values:
        """Return the time outside of the rows inside, negative where these overlap."""
        inside = np.zeros(len(self.wall), dtype=np.result_type(self.wall, self.work))
        np.add.at(inside, self.owners[1:], (self.wall + self.work)[1:])
        return self.wall + self.work - np.where(self.is_timed, inside, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """The time of each row in the unit of its column.

    Attributes:
        own: Time outside of the rows below, 0 where those overlap or none was recorded.
        whole: Time with the rows below; of a row without a time the sum of the outermost below.
        has_own: Whether the row was timed.
        has_whole: Whether it or a row below was timed.
    """

    own: Values
    whole: Values
    has_own: Mask
    has_whole: Mask


def is_span(column: MetricColumn) -> bool:
    """Return whether a column holds wall times of host ranges."""
    spec = column.spec
    return (
        spec.aggregation is Aggregation.EXCLUSIVE
        and column.kind.is_number
        and spec.base.lower() == _BASE
        and spec.unit in _NANOSECONDS
    )


def spans_of(profile: Profile, column: MetricColumn) -> Spans:
    """Return the times of host ranges; operators without a wall time have their recorded time."""
    ranges = ranges_of(profile, column)
    parts = ranges.own()
    has_own = ranges.is_timed | (ranges.work > 0)
    whole = preorder.sums(profile.parents, parts)
    covered = preorder.sums(profile.parents, has_own) > 0
    return Spans(np.maximum(parts, 0), whole, has_own, covered)


def ranges_of(profile: Profile, column: MetricColumn) -> Ranges:
    """Return what a column of wall times and the times of operators say of each row."""
    timed = column.known & (column.values >= 0)
    wall = np.where(timed, column.values, 0)
    work = np.where(timed, 0, _host_work(profile, column))
    return Ranges(wall, work, timed, _owners_across(profile, timed))


def with_self_times(profile: Profile) -> Profile:
    """Return the profile with self times instead of wall times, which then add up over rows."""
    found = {}
    for name, column in profile.columns.items():
        if is_span(column):
            spans = spans_of(profile, column)
            is_whole = spans.own.dtype.kind == "i"
            found[name] = replace(
                column,
                spec=replace(column.spec, aggregation=Aggregation.INCLUSIVE),
                kind=ValueKind.INT if is_whole else ValueKind.FLOAT,
                values=np.where(spans.has_own, spans.own, 0),
                valid=spans.has_own,
            )
    return replace(profile, columns={**profile.columns, **found}) if found else profile


def without_nested(column: MetricColumn, parents: Indexes, groups: Indexes) -> MetricColumn:
    """Return a column of wall times to sum by group, without times that another one includes.

    Args:
        column: Wall times of the rows.
        parents: Row of each row's parent, -1 for a root.
        groups: Group of each row.
    """
    inside = groups[1:] == groups[parents[1:]]
    if not (is_span(column) and bool((inside & (parents[1:] >= 0)).any())):
        return column
    timed = column.known
    owners = _owners(parents, timed)
    again = timed[owners] & (groups[owners] == groups) & (owners != np.arange(len(owners)))
    return replace(column, valid=column.valid & ~again, values=np.where(again, 0, column.values))


def _owners(parents: Indexes, timed: Mask) -> Indexes:
    """Return for each row the nearest timed row above it, else the root; the root has none."""
    flags, found = timed.tolist(), [0] * len(parents)
    for row, above in enumerate(parents.tolist()):
        if above >= 0:
            found[row] = above if flags[above] else found[above]
    return np.array(found, dtype=np.int32)


def _owners_across(profile: Profile, timed: Mask) -> Indexes:
    """Return the same, but a backward pass below a layer is not in the time of its forward pass.

    It is in that of the scope around the layers.
    """
    late = [text == _BACKWARD for text in profile.strings]
    if not any(late):
        return _owners(profile.parents, timed)
    is_late = np.array(late, dtype=np.bool_)[profile.frames].tolist()
    flags, layers = timed.tolist(), (profile.kinds == FrameKind.LAYER).tolist()
    found, outside = [0] * len(profile), [0] * len(profile)
    for row, above in enumerate(profile.parents.tolist()):
        if above < 0:
            continue
        outside[row] = above if flags[above] and not layers[above] else outside[above]
        if is_late[above]:
            found[row] = outside[above]
        else:
            found[row] = above if flags[above] else found[above]
    return np.array(found, dtype=np.int32)


def _host_work(profile: Profile, column: MetricColumn) -> Values:
    """Return the recorded time of operators that ran on the host, in the unit of a column."""
    nothing = np.zeros(len(profile), dtype=np.int64)
    time = next((each for each in profile.columns.values() if _is_time(each)), None)
    is_host = np.array([*(device.kind == _HOST for device in profile.devices), False])
    if time is None or not bool(is_host.any()):
        return nothing
    worked = is_host[profile.device_rows] & time.known & (time.values > 0)
    scale = _NANOSECONDS[time.spec.unit] / _NANOSECONDS[column.spec.unit]
    values = time.values if scale == 1.0 else time.values * scale
    return np.where(worked, values, 0)


def _is_time(column: MetricColumn) -> bool:
    spec = column.spec
    return (
        spec.base.lower() == _TIME
        and spec.unit in _NANOSECONDS
        and spec.aggregation is Aggregation.INCLUSIVE
        and column.kind.is_number
    )

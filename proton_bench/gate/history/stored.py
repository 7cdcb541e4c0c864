"""The points of a store: one for each run, from sums that its engine computes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proton_bench.analysis.choices import QUANTILES
from proton_bench.analysis.selector import Selectors
from proton_bench.analysis.view.names import steady_name
from proton_bench.errors import UsageError
from proton_bench.gate.history.points import Followed, Machine, Point, Subject, Value
from proton_bench.store.questions import Question, path_series, paths_of
from proton_bench.store.selection import Selection
from proton_bench.store.store import Snapshot, where_clause

__all__ = ["stored_points"]

_TOTAL = "total"
# Metrics of histories beside those that are columns of the answer, by what the total is divided.
_MEANS = {_TOTAL: "present", "mean": "count"}
_METRICS = (*_MEANS, "min", *QUANTILES)
_RUN = ("job", "run", "arch")
_FACTS = """
SELECT job, run, arch, min(time_unix_nano) AS time_ns, max("commit") AS revision,
    coalesce(bool_or(dirty), false) AS is_dirty, max(driver) AS driver,
    sum(coalesce(len(members), 1))::BIGINT AS runs, min(source) AS recording
FROM profiles {where} GROUP BY job, run, arch ORDER BY time_ns, job, run, arch"""


def stored_points(selection: Selection, followed: Followed) -> Iterator[Point]:
    """Yield the points of selected profiles: one for each run and architecture.

    A value is that of the device time (``time (ns)``) of a path and all below it: ``total`` of a
    profile, the mean over those of the run, or a statistic of all calls in the run. Series are of
    jobs, and their machine is the architecture, because ranks are on many machines.

    Args:
        selection: Profiles of a store.
        followed: Which paths and metric are followed; without a metric the total.

    Raises:
        UsageError: There is no store, no such path or metric, or the condition is wrong.
        ProfileFormatError: The store is damaged.
    """
    metric = followed.metric or _TOTAL
    if metric not in _METRICS:
        known = ", ".join(_METRICS)
        raise UsageError(f"a store has no history of {metric!a}: choose from {known}")
    snapshot = selection.snapshot()
    values: dict[tuple[Any, ...], dict[Subject, Value]] = defaultdict(dict)
    matched: set[str] = set()
    for glob in followed.paths or ("**",):
        question = Question(
            glob, by=(*_RUN, "path"), where=selection.condition, quantiles=metric in QUANTILES
        )
        paths = paths_of(snapshot, glob)
        new = paths.keys() - matched
        matched |= new
        quarantined = Selectors(followed.policy.quarantine)
        for line in path_series(snapshot, question).to_pylist():
            found = _found(line, metric)
            if line["path"] not in new:
                continue  # an earlier glob matches it too
            if found is None or not (math.isfinite(found) and found > 0.0):
                continue  # it has no logarithm
            path, run = paths[line["path"]], tuple(line[column] for column in _RUN)
            values[run][_subject(values[run], path, metric)] = Value(
                value=found,
                as_short=found,
                metric=metric,
                unit="ns",
                share=1.0 if followed.paths else line["share"] or 0.0,
                direction=1,
                is_quarantined=bool(quarantined.of_path(path)),
            )
    for facts in _facts(snapshot, selection.condition):
        yield _point(facts, values[tuple(facts[column] for column in _RUN)])


def _found(line: Mapping[str, Any], metric: str) -> float | None:
    if metric not in _MEANS:
        value: float | None = line[metric]
        return value
    count = line[_MEANS[metric]]
    return line["total"] / count if count else None


def _subject(known: Mapping[Subject, Value], path: Sequence[str], metric: str) -> Subject:
    """Return the key of a path: names that stay, and which of several paths with these it is."""
    names = tuple(steady_name(name) for name in path)
    occurrence = 0
    while (names, occurrence, metric) in known:
        occurrence += 1
    return names, occurrence, metric


def _facts(snapshot: Snapshot, condition: str) -> list[dict[str, Any]]:
    with snapshot.connect() as connection:
        found: list[dict[str, Any]] = (
            connection.sql(_FACTS.format(where=where_clause(condition)))
            .to_arrow_table()
            .to_pylist()
        )
        return found


def _point(facts: Mapping[str, Any], values: Mapping[Subject, Value]) -> Point:
    machine: Machine = (("architecture", facts["arch"]),) if facts["arch"] else ()
    return Point(
        group=facts["job"],
        source=facts["run"],
        time_ns=facts["time_ns"],
        revision=facts["revision"] or "",
        is_dirty=facts["is_dirty"],
        machine=machine,
        tools={"GPU driver": facts["driver"]} if facts["driver"] else {},
        runs=facts["runs"],
        recording=facts["recording"],
        values=values,
        texts={},
    )

"""One point per experiment: what the gate would compare, as one number per path and metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.analysis.compare.readable import with_texts
from proton_bench.analysis.naming.frame_names import parse_frame
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.run import Run
from proton_bench.analysis.selector import Selectors
from proton_bench.analysis.view.names import rows_above, steady_name
from proton_bench.gate.baselines import revision_of
from proton_bench.gate.machine import Tier, facts_of, machine_of, tick_of
from proton_bench.gate.policy import OTHER_UNITS, TAIL, Policy, Threshold
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.statistics.location import SHORT_NS, locate
from proton_bench.gate.verdict.benchmarks import compared_runs, measured_runs, whole_benchmarks
from proton_bench.gate.verdict.checks import Check, choose_checks, lasting_keys, observe_checks
from proton_bench.gate.verdict.measured import Measured
from proton_bench.model.arrays import Floats
from proton_bench.model.preorder import subtree_ends

_SHARE_PART = 0.25
# Medians within this factor of the limit for short paths are computed in both ways.
_NEAR_SHORT = 1.5

RowKey = tuple[tuple[str, ...], int, str]
Machine = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Followed:
    """Which paths and metrics have series.

    These are the checks of the policy, but one for each path where the policy does not ask for
    more: several numbers that say the same would only make steps harder to find. It is the time of
    a launch where there are launches, and the total else.

    Attributes:
        policy: The policy of the gate.
        paths: Globs of the only paths; the totals around these are followed too.
    """

    policy: Policy
    paths: tuple[str, ...] = ()

    def of_runs(self) -> Policy:
        """Return the policy by which runs are measured."""
        amounts = self.policy.default_threshold().amounts
        asked = [Threshold("", amounts, glob, is_written=False) for glob in self.paths]
        return replace(
            self.policy,
            # A path whose share varies around the policy's must not come and go.
            share=self.policy.share * _SHARE_PART,
            overriding=(*self.policy.overriding, *asked),
        )

    def chosen(self, measured: Measured, checks: Sequence[Check]) -> tuple[Check, ...]:
        """Return the checks that have a series."""
        written = (*self.policy.thresholds, *self.policy.overriding)
        asks_totals = any(each.metric == "total" for each in written)
        launched = {
            check.row
            for check in checks
            if check.threshold.is_per_launch and check.threshold.metric != TAIL
        }
        checks = [
            check
            for check in checks
            if not check.is_extra
            and (check.threshold.metric != "total" or asks_totals or check.row not in launched)
        ]
        if not self.paths:
            return tuple(checks)
        tree = measured.comparison.tree
        rows = np.array(Selectors(self.paths).of_tree(tree), dtype=object) != 0
        around = rows_above(rows, subtree_ends(tree.parents))
        return tuple(
            check
            for check in checks
            if rows[check.row] or (check.threshold.metric == "total" and around[check.row])
        )


@dataclass(frozen=True, slots=True)
class Value:
    """The value of one path and metric in one experiment.

    Attributes:
        value: Median over the processes, in ``unit``.
        as_short: The value if the path counts as short, because it is in other experiments.
        metric: What was measured: the mean in place of the median where single launches were not
            kept precisely enough.
        unit: Unit of the value, "" for none.
        share: Share of the path in the time of a run, 1 if it counts anyway.
        direction: +1 if more is worse, -1 if less is, 0 if any change is.
        is_quarantined: Whether it never fails.
    """

    value: float
    as_short: float
    metric: str
    unit: str
    share: float
    direction: int
    is_quarantined: bool


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One experiment: runs that were recorded together on one machine.

    Attributes:
        group: Name of the baseline that it was saved for, "" for files.
        source: Name of the entry, file or folder.
        time_ns: When its first run began, ns since 1970; None if unknown.
        revision: Git revision of the program, "" if unknown.
        is_dirty: Whether files differed from that revision.
        machine: Facts of machine and device; points of one series have equal ones.
        tools: Facts of driver and versions.
        runs: Number of its processes.
        recording: A file that was recorded in it, "" if unknown.
        values: Its values by path, occurrence among equal paths, and metric as thresholds name it.
        texts: What to show for recorded names, where that differs.
    """

    group: str
    source: str
    time_ns: int | None
    revision: str
    is_dirty: bool
    machine: Machine
    tools: Mapping[str, str]
    runs: int
    recording: str
    values: Mapping[RowKey, Value]
    texts: Mapping[str, str]


def points_of(
    runs: Sequence[Run], followed: Followed, *, group: str, source: str
) -> Iterator[Point]:
    """Yield the points of runs that were recorded together, one for each machine.

    Args:
        runs: The runs; unfinished ones are left out.
        followed: Which paths and metrics are measured.
        group: Name of a baseline, "" for none.
        source: Name of the runs.

    Raises:
        UsageError: The runs do not measure the same, or a threshold does not fit their metric.
        ProfileFormatError: Their paths are too many.
    """
    machines: dict[Machine, list[Run]] = {}
    for run in runs:
        if not run.profile.partial:
            machines.setdefault(_machine(run), []).append(run)
    for machine, chosen in machines.items():
        measured, checks = _measured(chosen, followed)
        quarantine = followed.policy.quarantine
        values = dict(_values(measured, checks, quarantine, count=len(chosen)))
        first = min(chosen, key=lambda run: _start_ns(run) or 0)
        git = first.profile.provenance.get("git")
        yield Point(
            group=group,
            source=source,
            time_ns=_start_ns(first),
            revision=revision_of(first.profile),
            is_dirty=isinstance(git, Mapping) and bool(git.get("dirty", False)),
            machine=machine,
            tools=_tools(first),
            runs=len(chosen),
            recording=first.source,
            values=values,
            texts=_texts(measured, values),
        )


def _machine(run: Run) -> Machine:
    """Return facts that are equal on one machine and device alone.

    A GPU's UUID says it; names of hosts do not, because each container may have its own.
    """
    facts = machine_of(run.profile)
    if "GPU uuid" in facts:
        facts.pop("host", None)
    return tuple(sorted(facts.items()))


def _measured(runs: Sequence[Run], followed: Followed) -> tuple[Measured, tuple[Check, ...]]:
    """Return what a gate would measure of these runs, as if they were both its sides."""
    half = len(runs) // 2
    sides = Arrangement(tuple(runs[:half]) or tuple(runs), tuple(runs[half:]))
    compared = compared_runs(sides, followed.of_runs())
    measured = measured_runs(compared).by_statistic(compared.policy.statistic)
    return measured, followed.chosen(measured, choose_checks(measured, compared.policy))


def _values(
    measured: Measured, checks: Sequence[Check], quarantine: Sequence[str], *, count: int
) -> Iterator[tuple[RowKey, Value]]:
    observed = observe_checks(measured, checks)
    is_whole = whole_benchmarks(measured)
    quarantined = Selectors(quarantine).of_tree(measured.comparison.tree)
    middles = [_middle(observed.values[:count, column]) for column in range(len(checks))]
    shorts = _as_short(measured, checks, middles, metrics=observed.metrics, count=count)
    keys = lasting_keys(measured, checks)
    columns = zip(checks, keys, middles, shorts, observed.metrics, strict=True)
    for check, key, middle, short, metric in columns:
        if math.isnan(middle):
            continue
        row = check.row
        yield (
            key,
            Value(
                value=middle,
                as_short=short,
                metric=metric,
                unit=OTHER_UNITS.get(metric, measured.unit),
                share=1.0 if check.threshold.selector or is_whole[row] else check.share,
                direction=check.threshold.direction,
                is_quarantined=bool(quarantined[row]),
            ),
        )


def _middle(values: Floats) -> float:
    """Return the median of the known values; NaN unless all are positive and have a logarithm."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) and bool((known > 0.0).all()) else math.nan


def _as_short(
    measured: Measured,
    checks: Sequence[Check],
    middles: Sequence[float],
    *,
    metrics: Sequence[str],
    count: int,
) -> list[float]:
    """Return the values of medians near the limit as if all paths were short.

    The gate uses another estimator for short paths. A path that crosses the limit must not have a
    step from that.
    """
    found = list(middles)
    near = [
        place
        for place, (metric, middle) in enumerate(zip(metrics, middles, strict=True))
        if metric == "median"
        and measured.unit == "ns"
        and SHORT_NS / _NEAR_SHORT < middle < SHORT_NS * _NEAR_SHORT
    ]
    if not near:
        return found
    lines = measured.samples([checks[place].row for place in near])[:count]
    for column, place in enumerate(near):
        values = [
            locate(sample, "median", tick=tick_of(run.profile, "ns"), short=True).value
            for run, line in zip(measured.runs, lines, strict=False)
            if (sample := line[column]) is not None and sample.size
        ]
        found[place] = _middle(np.array(values)) if len(values) == len(lines) else middles[place]
    return found


def _texts(measured: Measured, values: Mapping[RowKey, Value]) -> dict[str, str]:
    """Return what to show for the names of paths, which are without running and line numbers."""
    names = {name for path, _, _ in values for name in path}
    shown = with_texts(measured.comparison, Readable(kernels=True)).tree.texts()
    return {
        steady: _without_line(name, text)
        for name, text in shown.items()
        if (steady := steady_name(name)) in names
    }


def _without_line(name: str, text: str) -> str:
    """Return the text of a name without its line number: other frames of the path have others."""
    frame = parse_frame(name)
    return text if frame is None else text.replace(f":{frame.line} ", " ", 1)


def _tools(run: Run) -> dict[str, str]:
    facts = facts_of(run.profile)
    return {fact: value for (tier, fact), value in facts.items() if tier is Tier.TOOL}


def _start_ns(run: Run) -> int | None:
    start = run.profile.provenance.get("start_time_ns")
    is_time = isinstance(start, int) and not isinstance(start, bool) and 0 < start < 1 << 63
    return start if is_time else None

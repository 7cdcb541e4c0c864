"""One number per process for every check: the data of the gate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.formula import SECONDS
from proton_bench.errors import UsageError
from proton_bench.gate.judge.check import Check
from proton_bench.gate.judge.measured import SUMMED, Measured
from proton_bench.gate.judge.verdict import Reason
from proton_bench.gate.machine.tick import tick_of
from proton_bench.gate.policy.threshold import TAIL
from proton_bench.gate.statistics.location import (
    SHORT_NS,
    Location,
    grouped_quantile,
    locate,
    tick_variance,
)
from proton_bench.gate.statistics.sample import Sample

__all__ = ["Observations", "observe_checks"]

Numbers = npt.NDArray[np.float64]

_FROM_SUMS = frozenset({"total", "wall", *SUMMED})
_SLOWEST = 0.1
# A larger error, as a share of a threshold, could change a verdict.
_BEARABLE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Values of each process, base first, one column for each check.

    Attributes:
        values: In the metric's unit; NaN if there is none.
        tick_variances: Contribution of the timer's tick to the variance of each ``ln(value)``.
        metrics: What was measured for each check: the mean of all launches instead of their median
            if single ones were not kept precisely enough.
        notes: Notes on the values of each check.
        first_new: Number of base runs.
    """

    values: Numbers
    tick_variances: Numbers
    metrics: tuple[str, ...]
    notes: tuple[tuple[Reason, ...], ...]
    first_new: int

    def logarithms(self) -> tuple[Numbers, Numbers]:
        """Return ``ln`` of the values of base and new runs; NaN unless positive."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(self.values > 0.0, np.log(self.values), np.nan)
        return logs[: self.first_new], logs[self.first_new :]

    def typical(self) -> tuple[Numbers, Numbers]:
        """Return the geometric means of both sides, NaN without positive values."""
        base, new = (_mean(each) for each in self.logarithms())
        return np.exp(base), np.exp(new)

    def between(self) -> Numbers:
        """Return the geometric mean of both sides, which does not depend on their order."""
        base, new = self.typical()
        return np.sqrt(base) * np.sqrt(new)

    def tick_floor(self, *, paired: bool) -> Numbers:
        """Return the least variance of one pair, or of one process if the sides are apart."""
        base, new = (
            self.tick_variances[: self.first_new],
            self.tick_variances[self.first_new :],
        )
        floors = _mean(base) + _mean(new)
        return np.nan_to_num(floors if paired else floors / 2.0)

    def resolution(self) -> Numbers:
        """Return the variance of the effects that more runs do not reduce.

        If all launches of all processes of a side have one value, they have the same rounding
        error: ``(tick / value)^2 / 12`` for that side.
        """
        parts = []
        for logs, ticks in zip(
            self.logarithms(),
            (self.tick_variances[: self.first_new], self.tick_variances[self.first_new :]),
            strict=True,
        ):
            known = np.isfinite(logs)
            low = np.where(known, logs, np.inf).min(axis=0)
            high = np.where(known, logs, -np.inf).max(axis=0)
            parts.append(np.where(low == high, np.nan_to_num(_mean(ticks)), 0.0))
        return parts[0] + parts[1]


def observe_checks(measured: Measured, checks: Sequence[Check]) -> Observations:
    """Compute the value of each process for each check.

    Raises:
        UsageError: A threshold is an amount of time for a metric that is not a time.
    """
    _check_units(measured, checks)
    shape = (len(measured.runs), len(checks))
    values, ticks = np.full(shape, np.nan), np.zeros(shape)
    metrics = [check.threshold.metric for check in checks]
    notes: list[tuple[Reason, ...]] = []
    places = {row: place for place, row in enumerate(sorted({check.row for check in checks}))}
    samples = measured.samples(list(places))
    asked = set(metrics)
    sums = {name: measured.sums(SUMMED[name]) for name in sorted(asked & SUMMED.keys())}
    sums |= {"total": measured.inclusive, "wall": measured.walls()}
    steps = [tick_of(run.profile, measured.unit) for run in measured.runs]
    for column, check in enumerate(checks):
        if check.threshold.metric in _FROM_SUMS:
            values[:, column] = _from_sums(measured, check, sums)
            notes.append(_noted(measured, check, values[:, column]))
            continue
        line = [each[places[check.row]] for each in samples]
        present = measured.present[:, check.row]
        whole = all(each is not None for each, here in zip(line, present, strict=True) if here)
        found = _from_samples(line, check, steps, unit=measured.unit) if whole else []
        worst = max((_excess(each, check) for each in found), default=math.inf)
        unknown = whole and math.isinf(worst)
        if not whole or 1.0 < worst < math.inf:
            found = _from_means(measured, check, steps)
        elif unknown:
            found = [Location(math.nan)] * len(line)
        values[:, column] = [each.value for each in found]
        ticks[:, column] = [each.log_variance for each in found]
        if metrics[column] == "median" and worst > 1.0 and not unknown:
            metrics[column] = "mean"
        notes.append(_noted(measured, check, values[:, column]))
    return Observations(values, ticks, tuple(metrics), tuple(notes), measured.first_new)


def _check_units(measured: Measured, checks: Sequence[Check]) -> None:
    for check in checks:
        amounts = check.threshold.amounts
        times = check.threshold.metric not in SUMMED
        if times and measured.unit != "ns" and not all(each.is_relative for each in amounts):
            raise UsageError(
                f"threshold {str(check.threshold)!r} is an amount of time, but these runs have "
                f"{measured.source!a}, which is not in ns; use a percentage"
            )


def _from_samples(
    line: Sequence[Sample | None], check: Check, steps: Sequence[float], *, unit: str
) -> list[Location]:
    known = [each for each in line if each is not None and each.size]
    # The same for all processes of both sides, because two estimators would differ.
    short = unit == "ns" and any(grouped_quantile(each, 0.5) < SHORT_NS for each in known)
    return [
        Location(math.nan, math.nan)
        if sample is None or not sample.size
        else _tail(sample, tick)
        if check.threshold.metric == TAIL
        else locate(sample, check.threshold.metric, tick=tick, short=short)
        for sample, tick in zip(line, steps, strict=True)
    ]


def _tail(sample: Sample, tick: float) -> Location:
    """Return the mean of the slowest tenth of the launches, the expected shortfall at 90 %.

    Unlike a quantile it grows with every launch beyond it: in number and in length. Of less than
    ten launches it is the slowest one.
    """
    upto, known = np.cumsum(sample.counts), sample.known
    start = upto[-1] * (1.0 - _SLOWEST)
    weights = np.maximum(upto - np.maximum(upto - sample.counts, start), 0.0)
    value = float(np.average(sample.values, weights=weights))
    if bool((weights[known.unknown] > 0.0).any()) or not value > 0.0:
        return Location(value, 0.0, math.inf)
    error = float(np.average(known.highs - known.lows, weights=weights)) / value
    return Location(value, tick_variance(value, tick, float(weights.sum())), error)


def _excess(found: Location, check: Check) -> float:
    """Return the error of a value as a multiple of its limit, a tenth of the threshold."""
    if not found.error or math.isnan(found.value):
        return 0.0
    part = check.threshold.ratio
    if part is None:
        part = (check.threshold.absolute or 0.0) / abs(found.value)
    return found.error / (_BEARABLE * part) if part > 0 else math.inf


def _from_means(measured: Measured, check: Check, steps: Sequence[float]) -> list[Location]:
    """Return means of all launches, which are known even if single ones were not kept."""
    if check.threshold.metric not in {"median", "mean"}:
        return [Location(math.nan, math.nan)] * len(steps)
    found = []
    launches = _launches(measured, check.row)
    for line, (tick, calls) in enumerate(zip(steps, launches.tolist(), strict=True)):
        here = bool(measured.present[line, check.row])
        value = float(measured.totals[line, check.row]) / calls if here else math.nan
        found.append(Location(value, tick_variance(value, tick, calls)))
    return found


def _launches(measured: Measured, row: int) -> Numbers:
    """Return the launches of a row in each run: 1 if no run counts them, NaN if only others do."""
    calls = measured.calls[:, row]
    unknown = math.nan if bool((calls > 0.0).any()) else 1.0
    return np.where(calls > 0.0, calls, unknown)


def _from_sums(measured: Measured, check: Check, sums: Mapping[str, Numbers]) -> Numbers:
    row, metric = check.row, check.threshold.metric
    own: Numbers = sums[metric][:, row]
    if metric == "total":  # a run without any of it has nothing to compare
        return np.where(own != 0.0, own, np.nan)
    if metric in {"mem", "wall"}:
        return own
    totals = np.where(measured.present[:, row], measured.totals[:, row], np.nan)
    if metric in {"cycles", "instructions"}:
        return own / _launches(measured, row)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = own / (totals * SECONDS.get(measured.unit, math.nan))
    return rates / 1e9 if metric == "gbps" else rates


def _noted(measured: Measured, check: Check, values: Numbers) -> tuple[Reason, ...]:
    """Return the notes on a check's values and launches."""
    tree = measured.comparison.tree
    notes = []
    # Runs of both sides have the path, so a side without any value did not record it.
    recorded = all(np.isfinite(side).any() for side in measured.sides(values))
    if bool((values <= 0.0).any()) or not recorded:
        notes.append(Reason.NO_VALUES)
    elif not np.isfinite(values).all():
        notes.append(Reason.TOO_FEW_RUNS)
    variants = tree.variants_of(check.row)
    configs = {each.config for each in variants if each is not None and each.config}
    several = -2 in {int(tree.base.codes[check.row]), int(tree.new.codes[check.row])}
    if several or len(configs) > 1 or tree.code_changed(check.row):
        notes.append(Reason.CODE_CHANGED)
    return tuple(notes)


def _mean(values: Numbers) -> Numbers:
    known = np.isfinite(values)
    counts = known.sum(axis=0)
    sums: Numbers = np.where(known, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

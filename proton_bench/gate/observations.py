"""One number per process for every question: the data of the gate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.formula import SECONDS
from proton_bench.errors import UsageError
from proton_bench.gate.check import Check
from proton_bench.gate.location import SHORT_NS, locate, mid_quantile, tick_variance
from proton_bench.gate.measured import Measured
from proton_bench.gate.sample import Sample
from proton_bench.gate.tick import tick_of
from proton_bench.gate.verdict import Reason

__all__ = ["Observations", "observe_checks"]

Numbers = npt.NDArray[np.float64]

# Metrics that are summed over launches, and what recorded metrics begin with.
_SUMMED = {"cycles": "cycles", "mem": "mem", "flops": "flops", "gbps": "bytes"}
_FROM_SUMS = frozenset({"total", *_SUMMED})


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Values of each process, base first, one column for each question.

    Attributes:
        values: In the metric's unit; NaN where there is none.
        tick_variances: What the timer's tick gives to the variance of each ``ln(value)``.
        notes: What to know of each question's values.
        first_new: Number of base runs.
    """

    values: Numbers
    tick_variances: Numbers
    notes: tuple[tuple[Reason, ...], ...]
    first_new: int

    def logarithms(self) -> tuple[Numbers, Numbers]:
        """Return ``ln`` of the values of base and new runs; what is not positive has none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(self.values > 0.0, np.log(self.values), np.nan)
        return logs[: self.first_new], logs[self.first_new :]

    def typical(self) -> tuple[Numbers, Numbers]:
        """Return the geometric means of both sides, NaN where nothing is positive."""
        base, new = (_mean(each) for each in self.logarithms())
        return np.exp(base), np.exp(new)

    def between(self) -> Numbers:
        """Return the geometric mean of both sides, which exchanging them leaves as it is."""
        base, new = self.typical()
        return np.sqrt(base) * np.sqrt(new)

    def tick_floor(self, *, paired: bool) -> Numbers:
        """Return the least variance that one pair, or one process of sides apart, can have."""
        base, new = (
            self.tick_variances[: self.first_new],
            self.tick_variances[self.first_new :],
        )
        floors = _mean(base) + _mean(new)
        return np.nan_to_num(floors if paired else floors / 2.0)

    def resolution(self) -> Numbers:
        """Return the variance of the effects that no number of runs makes smaller.

        Where all launches of all processes of a side show one value, its error of rounding is the
        same in all of them: ``(tick / value)^2 / 12`` for that side.
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
    """Compute what each process says to each question.

    Raises:
        UsageError: An amount of time is asked of something that is no time.
    """
    _check_units(measured, checks)
    shape = (len(measured.runs), len(checks))
    values, ticks = np.full(shape, np.nan), np.zeros(shape)
    notes: list[tuple[Reason, ...]] = []
    places = {row: place for place, row in enumerate(sorted({check.row for check in checks}))}
    samples = measured.samples(list(places))
    asked = {check.threshold.metric for check in checks}
    sums = {name: measured.sums(_SUMMED[name]) for name in sorted(asked & _SUMMED.keys())}
    steps = [tick_of(run.profile, measured.unit) for run in measured.runs]
    for column, check in enumerate(checks):
        if check.threshold.metric in _FROM_SUMS:
            values[:, column] = _from_sums(measured, check, sums)
            notes.append(_noted(measured, check, values[:, column], mean_only=False))
            continue
        line = [each[places[check.row]] for each in samples]
        present = measured.present[:, check.row]
        whole = all(each is not None for each, here in zip(line, present, strict=True) if here)
        if whole:
            found = _from_samples(line, check, steps, unit=measured.unit)
        else:
            found = _from_means(measured, check, steps)
        values[:, column], ticks[:, column] = found
        only = not whole and check.threshold.metric == "median"
        notes.append(_noted(measured, check, values[:, column], mean_only=only))
    return Observations(values, ticks, tuple(notes), measured.first_new)


def _check_units(measured: Measured, checks: Sequence[Check]) -> None:
    for check in checks:
        amounts = check.threshold.amounts
        times = check.threshold.metric not in _FROM_SUMS or check.threshold.metric == "total"
        if times and measured.unit != "ns" and not all(each.is_relative for each in amounts):
            raise UsageError(
                f"threshold {str(check.threshold)!r} names an amount of time, and these runs have "
                f"{measured.source!a}, which is not in ns; use a percentage"
            )


def _from_samples(
    line: Sequence[Sample | None], check: Check, steps: Sequence[float], *, unit: str
) -> tuple[list[float], list[float]]:
    known = [each for each in line if each is not None and each.size]
    # All processes of both sides alike: two estimators would differ by themselves.
    short = unit == "ns" and any(mid_quantile(each, 0.5) < SHORT_NS for each in known)
    values, ticks = [], []
    for sample, tick in zip(line, steps, strict=True):
        if sample is None or not sample.size:
            values.append(math.nan)
            ticks.append(math.nan)
            continue
        found = locate(sample, check.threshold.metric, tick=tick, short=short)
        values.append(found.value)
        ticks.append(found.log_variance)
    return values, ticks


def _from_means(
    measured: Measured, check: Check, steps: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return means of all launches, the one thing known where single ones were not kept."""
    if check.threshold.metric not in {"median", "mean"}:
        nothing = [math.nan] * len(steps)
        return nothing, nothing
    values, ticks = [], []
    for line, tick in enumerate(steps):
        calls = measured.calls[line, check.row]
        here = bool(measured.present[line, check.row])
        value = measured.totals[line, check.row] / (calls or 1.0) if here else math.nan
        values.append(float(value))
        ticks.append(tick_variance(float(value), tick, float(calls or 1.0)))
    return values, ticks


def _from_sums(measured: Measured, check: Check, sums: Mapping[str, Numbers]) -> Numbers:
    row, metric = check.row, check.threshold.metric
    totals = np.where(measured.present[:, row], measured.totals[:, row], np.nan)
    if metric == "total":
        return totals
    own: Numbers = sums[metric][:, row]
    if metric == "mem":
        return own
    if metric == "cycles":
        return own / np.maximum(measured.calls[:, row], 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = own / (totals * SECONDS.get(measured.unit, math.nan))
    return rates / 1e9 if metric == "gbps" else rates


def _noted(
    measured: Measured, check: Check, values: Numbers, *, mean_only: bool
) -> tuple[Reason, ...]:
    tree = measured.comparison.tree
    notes = [Reason.MEAN_ONLY] if mean_only else []
    if not np.isfinite(values).any():
        notes.append(Reason.NO_VALUES)
    if bool((values <= 0.0).any()):
        notes.append(Reason.NOT_POSITIVE)
    if not measured.present[:, check.row].all():
        notes.append(Reason.MISSING_IN_RUNS)
    if tree.code_changed(check.row):
        notes.append(Reason.CODE_CHANGED)
    variants = tree.variants_of(check.row)
    configs = {each.config for each in variants if each is not None and each.config}
    if len(configs) > 1:
        notes.append(Reason.AUTOTUNE_CHOICE)
    if -2 in {int(tree.base.codes[check.row]), int(tree.new.codes[check.row])}:
        notes.append(Reason.CODES_VARY)
    return tuple(notes)


def _mean(values: Numbers) -> Numbers:
    known = np.isfinite(values)
    counts = known.sum(axis=0)
    sums: Numbers = np.where(known, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

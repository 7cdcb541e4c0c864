"""The checks of one gate, with everything known about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.gate.judge import notes as said
from proton_bench.gate.judge.check import (
    Check,
    choose_checks,
    elapsed_times,
    limits_of,
    own_paths,
)
from proton_bench.gate.judge.measured import Measured
from proton_bench.gate.judge.observations import Observations, observe_checks
from proton_bench.gate.judge.result import Note
from proton_bench.gate.judge.rows import Judged
from proton_bench.gate.judge.suite import UNDECIDED_SHARE
from proton_bench.gate.machine.canary_shift import WARM_UP_SCOPE, CanaryShift, log_clocks, shift_of
from proton_bench.gate.machine.sensitivity import Sensitivity, sensitivity_of
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.policy.threshold import LOOSER, OTHER_UNITS, Amount, Threshold
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.statistics.common_shift import (
    LARGEST_SHIFT,
    common_shift,
    explained_by_shift,
)
from proton_bench.gate.statistics.controls import Controls, examine
from proton_bench.gate.statistics.decision import (
    RECOMMENDED_PAIRS,
    Background,
    Evidence,
    Limits,
    changed_for_certain,
    decide,
    detectable_with,
    weigh,
)
from proton_bench.model.metrics.counter_columns import INSTRUCTIONS

__all__ = ["Context", "Questions", "Shift"]

# Of a threshold whose amount decides nothing but how precise a quantile has to be.
_ANY_PERCENT = 3.0

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Context:
    """Inputs of a gate other than the runs.

    Attributes:
        arrangement: How the runs pair, if the caller knows it better than their times.
        part: Share of the false alarms that noise may cause in this look at the runs, if there are
            several looks.
        pairs: Pairs of the last look, 0 for those at hand.
    """

    arrangement: Arrangement | None = None
    part: float = 1.0
    pairs: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """What the machine may have changed for some checks alike.

    Attributes:
        rows: Mask of these checks.
        paths: Mask of those whose median is the shift.
        note: What is said of a shift so large that the machine was not the same.
        looser: How many times as much as kernels they usually shift.
    """

    rows: Mask
    paths: Mask
    note: Note
    looser: float = 1.0

    def is_large(self, evidence: Evidence) -> bool:
        """Return whether the machine was not the same."""
        return abs(common_shift(evidence, self.paths)) > self.looser * LARGEST_SHIFT

    def explains(self, evidence: Evidence, limits: Limits) -> Mask:
        """Return which changes of these checks vanish beyond the shift."""
        return self.rows & explained_by_shift(evidence, limits, self.paths, looser=self.looser)


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """The checks of one gate.

    Attributes:
        measured: The aligned runs.
        arrangement: Their order in time.
        policy: What is asked.
        context: What is known besides.
    """

    measured: Measured
    arrangement: Arrangement
    policy: Policy
    context: Context

    @property
    def has_unasked_instructions(self) -> bool:
        """Whether instructions were counted that no threshold is about."""
        asked = any(each.metric == INSTRUCTIONS for each in self.policy.thresholds)
        return not asked and bool(np.isfinite(self.measured.sums(INSTRUCTIONS)).any())

    def judged(self) -> tuple[Judged, Controls]:
        """Return the judged checks, and the result of the negative controls."""
        measured = self.measured.by_statistic(self.policy.statistic)
        checks = choose_checks(measured, self.policy)
        observations = observe_checks(measured, checks)
        base, new = observations.logarithms()
        limits = limits_of(checks, observations.between())
        evidence = weigh(
            base,
            new,
            self.arrangement.order,
            background=self.background(checks, observations),
            margin=limits.margin,
            fewest_runs=self.policy.runs,
        )
        same_binary = self._same_binary(checks)
        # Each kernel is one control.
        controls = examine(evidence, limits, same_binary & own_paths(checks))
        decisions = decide(evidence, limits, part=self.context.part)
        judged = Judged(
            measured=measured,
            checks=checks,
            observations=observations,
            evidence=evidence,
            limits=limits,
            decisions=decisions,
            same_binary=same_binary,
            clock_explains=_about_time(checks) & self._clock_explains(evidence, limits),
            shift_explains=self._shift_explains(checks, evidence, limits),
            order_explains=self._order_explains(checks, evidence),
        )
        return judged, controls

    def shifts(self, checks: Sequence[Check]) -> list[Shift]:
        """Return which changes of the machine cannot be distinguished from those of the program.

        Kernels and the host differ in what changes their speed. Canary kernels say nothing about
        the host; they are of it where elapsed times are all there is.
        """
        if self.arrangement.is_paired and not self.arrangement.is_confounded:
            return []
        elapsed = self._of_host(checks)
        below = np.array([each.row > 0 for each in checks], dtype=np.bool_)
        found = [Shift(elapsed, elapsed & below, said.ELAPSED_SHIFT, LOOSER)]
        if not self.canaries().is_steady:
            found += [Shift(~elapsed, own_paths(checks), said.COMMON_SHIFT)]
        return found

    def sensitivity(self, metric: str) -> Sensitivity:
        """Return what a gate of all paths by this statistic would see here."""
        asked = Threshold(metric, (Amount(_ANY_PERCENT, "%"),))
        policy = replace(self.policy, thresholds=(asked,)).with_marked(())
        judged, _ = replace(self, policy=policy).judged()
        at_hand = min(len(self.arrangement.base), len(self.arrangement.new))
        pairs = max(self.context.pairs, at_hand, RECOMMENDED_PAIRS)
        found = detectable_with(pairs, judged.evidence, judged.limits.margin)
        shares = np.array([check.share for check in judged.checks])
        totals = np.array([each.threshold.metric == "total" for each in judged.checks], dtype="?")
        of_run = totals & np.array([each.row == 0 for each in judged.checks], dtype="?")
        single = own_paths(judged.checks)
        return sensitivity_of(
            metric,
            found[single],
            shares[single],
            totals=found[totals & (shares > UNDECIDED_SHARE)],
            run=found[of_run],
        )

    def background(self, checks: Sequence[Check], observations: Observations) -> Background:
        """Return what the values of the checks do not say."""
        return Background(
            observations.tick_floor(paired=self.arrangement.is_paired),
            observations.resolution(),
            [each.threshold.metric for each in checks],
        )

    def _same_binary(self, checks: Sequence[Check]) -> Mask:
        tree = self.measured.comparison.tree
        rows = np.array([check.row for check in checks], dtype=np.intp)
        base, new = tree.base, tree.new
        alike = (base.codes[rows] > 0) & (base.codes[rows] == new.codes[rows])
        launched = (base.variants[rows] >= 0) & (base.variants[rows] == new.variants[rows])
        found: Mask = alike & launched & _about_time(checks)
        return found

    def _clock_explains(self, evidence: Evidence, limits: Limits) -> Mask:
        """Return which changes of time vanish when counted in cycles of the SM clock.

        Only a shift of the clock between the sides explains anything. Its noise does not: clocks
        of single processes vary by more than the times of their paths.
        """
        sides = self.arrangement.base, self.arrangement.new
        base, new = (float(log_clocks(side).mean()) for side in sides)
        if self.measured.unit != "ns" or not np.isfinite(new - base):
            return np.zeros(len(limits.threshold), dtype=np.bool_)
        remains = [
            changed_for_certain(each, each.effect + (new - base), limits)
            for each in (evidence, evidence.unshared)
            if each is not None
        ]
        found: Mask = ~np.any(remains, axis=0)
        return found

    def _shift_explains(self, checks: Sequence[Check], evidence: Evidence, limits: Limits) -> Mask:
        found = np.zeros(len(checks), dtype=np.bool_)
        for each in self.shifts(checks):
            found |= each.explains(evidence, limits)
        return found

    def _order_explains(self, checks: Sequence[Check], evidence: Evidence) -> Mask:
        """Return which changes running second may explain.

        Canary kernels can rule that out for kernels.
        """
        one_order = ~np.isfinite(evidence.order_effect)
        cleared = ~self._of_host(checks) & self.canaries().is_steady
        return one_order & ~cleared & self.arrangement.is_paired

    def _of_host(self, checks: Sequence[Check]) -> Mask:
        """Mark the elapsed times beside times of kernels."""
        return elapsed_times(checks) & (not self.measured.nested)

    def canaries(self) -> CanaryShift:
        """Return the shift of the canary kernels; what warms the device up does not count."""
        measured = self.measured
        found = np.flatnonzero(measured.canary & measured.present.all(axis=0)).tolist()
        measured.check_paths(found)
        rows = np.array(
            [row for row in found if WARM_UP_SCOPE not in measured.comparison.tree.path(row)],
            dtype=np.intp,
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            each = measured.totals[:, rows] / np.maximum(measured.calls[:, rows], 1.0)
            logs = np.where(each > 0, np.log(each), np.nan)
        return shift_of(*measured.sides(logs))


def _about_time(checks: Sequence[Check]) -> Mask:
    return np.array([each.threshold.metric not in OTHER_UNITS for each in checks], dtype=np.bool_)

"""Canary kernels run in every process and never change, so a change of them is the machine's.

In a recording they are below the top-level scope `CANARY_SCOPE`, and those that only warm the
device up are below `WARM_UP_SCOPE` in it. The provenance may have the SM clock, measured by an FMA
loop against the device's global timer, as ``{"canary": {"sm_clock_hz": ...}}``. Canary kernels are
not gated.

Clocks differ between processes of one machine, too: a GPU that boosts reaches one of several. So it
is the interval of the shift that says whether the machine changed, and few processes may not know.
The processes of a side are one sample even if the sides pair, because clocks of neighbours are no
more alike than others: that gives four pairs six degrees of freedom, where pairs leave two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.run import Run
from proton_bench.gate.statistics.decision import Background, Limits, decide, weigh

__all__ = [
    "CANARY_SCOPE",
    "LARGEST_SHIFT",
    "WARM_UP_SCOPE",
    "CanaryShift",
    "log_clocks",
    "shift_of",
]

Numbers = npt.NDArray[np.float64]

CANARY_SCOPE = "<canary>"
WARM_UP_SCOPE = "<warm-up>"
# On the log scale: 1 %.
LARGEST_SHIFT = 0.01


@dataclass(frozen=True, slots=True)
class CanaryShift:
    """Change of the canary kernels between the sides.

    Attributes:
        count: Canary kernels that ran in every run.
        shift: The mean of their changes on the log scale, NaN if unknown.
        low: Lower end of its 95 % interval, NaN with a single run on a side.
        high: Upper end.
    """

    count: int = 0
    shift: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def moved(self) -> bool:
        """Whether the machine's speed changed between the sides."""
        return self.low > LARGEST_SHIFT or self.high < -LARGEST_SHIFT

    @property
    def is_steady(self) -> bool:
        """Whether it did not; neither holds if the runs cannot tell."""
        return self.low > -LARGEST_SHIFT and self.high < LARGEST_SHIFT


def shift_of(base: Numbers, new: Numbers) -> CanaryShift:
    """Return the shift of canary kernels between the sides.

    Args:
        base: ``ln`` of their times, one line for each run, one column for each kernel; NaN for
            unknown.
        new: The same of the new side.
    """
    count = base.shape[1]
    if not count:
        return CanaryShift()
    nothing, limits = np.zeros(1), Limits(np.array([LARGEST_SHIFT]), np.ones(1))
    before, after = (side.mean(axis=1, keepdims=True) for side in (base, new))
    background = Background(nothing, nothing, ["median"])
    evidence = weigh(before, after, (), background=background, margin=limits.margin, fewest_runs=2)
    found = decide(evidence, limits)
    return CanaryShift(count, *(float(each[0]) for each in (found.effect, found.low, found.high)))


def log_clocks(runs: Sequence[Run]) -> Numbers:
    """Return ``ln`` of the SM clock of each run, NaN if it was not measured."""
    return np.array([_log_clock(run) for run in runs], dtype=np.float64)


def _log_clock(run: Run) -> float:
    canary = run.profile.provenance.get("canary")
    clock = canary.get("sm_clock_hz") if isinstance(canary, Mapping) else None
    if isinstance(clock, bool) or not isinstance(clock, int | float):
        return math.nan
    return math.log(clock) if math.isfinite(clock) and clock > 0 else math.nan

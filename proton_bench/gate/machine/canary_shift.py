"""Canary kernels run in every process and never change, so a change of them is the machine's.

In a recording they are below the top-level scope `CANARY_SCOPE`, and those that only warm the
device up are below `WARM_UP_SCOPE` in it. The provenance may have the SM clock, measured by an FMA
loop against the device's global timer, as ``{"canary": {"sm_clock_hz": ...}}``. Canary kernels are
not gated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.run import Run

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
        count: Canary kernels that ran on both sides.
        shift: The median of their changes on the log scale, 0 without any.
    """

    count: int = 0
    shift: float = 0.0

    @property
    def moved(self) -> bool:
        """Whether the machine's speed changed between the sides."""
        return abs(self.shift) > LARGEST_SHIFT


def shift_of(effects: Numbers) -> CanaryShift:
    """Return the shift from the effects of canary kernels on the log scale."""
    known = effects[np.isfinite(effects)]
    return CanaryShift(len(known), float(np.median(known))) if len(known) else CanaryShift()


def log_clocks(runs: Sequence[Run]) -> Numbers:
    """Return ``ln`` of the SM clock of each run, NaN if it was not measured."""
    return np.array([_log_clock(run) for run in runs], dtype=np.float64)


def _log_clock(run: Run) -> float:
    canary = run.profile.provenance.get("canary")
    clock = canary.get("sm_clock_hz") if isinstance(canary, Mapping) else None
    if isinstance(clock, bool) or not isinstance(clock, int | float):
        return math.nan
    return math.log(clock) if math.isfinite(clock) and clock > 0 else math.nan

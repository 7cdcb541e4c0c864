"""Changes that all paths share, where nothing tells whether the machine or the program made them.

Where the base was recorded at another time, or the same side always ran first, clocks and
temperature move all paths alike. Canary kernels could tell; without them a change is believed only
as far as it goes beyond that of the median path. What does not is undecided: it is neither a
regression nor, as if the shift were subtracted, no change.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from proton_bench.gate.timing import Evidence, Limits, one_sided

__all__ = ["FEWEST_PATHS", "common_shift", "explained_by_shift"]

# The median of fewer says too little of a shift.
FEWEST_PATHS = 8


def common_shift(evidence: Evidence) -> float:
    """Return the median effect of the tested paths on the log scale, 0 of too few."""
    effects = evidence.contrast.effect[evidence.tested]
    return float(np.median(effects)) if len(effects) >= FEWEST_PATHS else 0.0


def explained_by_shift(
    evidence: Evidence, limits: Limits, *, level: float
) -> npt.NDArray[np.bool_]:
    """Return which changes are none beyond the common shift."""
    effect = evidence.contrast.effect
    grew = np.sign(effect)
    beyond = grew * (effect - common_shift(evidence))
    p_values = one_sided(
        beyond, limits.margin, error=evidence.error, freedom=evidence.noise.freedom
    )
    remains = (p_values <= level) & (beyond >= limits.threshold)
    found: npt.NDArray[np.bool_] = evidence.tested & ~remains
    return found

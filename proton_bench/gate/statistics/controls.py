"""Negative controls: paths that cannot have changed.

A kernel whose compiled code, launch geometry and argument types are the same on both sides runs the
same instructions. Such negative controls show false changes of this experiment:

- if more than ``2 q`` of them, and at least two, show a change beyond the margin, the experiment is
void;
- their spread, if it is wider than the t distribution says, widens all standard errors by
  ``max(1, 1.4826 median |z|)``, ``z`` the normal scores of their statistics without a margin (the
  empirical null of Efron 2004, J. Am. Stat. Assoc. 99:96, with the median for the spread).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from proton_bench.gate.statistics.timing import Evidence, Limits, one_sided

__all__ = ["FEWEST", "Controls", "examine"]

# The median of fewer says too little about a spread.
FEWEST = 8
_NORMAL_MAD = 1.4826


@dataclass(frozen=True, slots=True)
class Controls:
    """Result of the negative controls of an experiment.

    Attributes:
        count: Controls with a measured effect.
        moved: Those that show a change beyond the margin.
        null_scale: What to multiply standard errors by, at least 1.
        invalid: Whether too many moved.
    """

    count: int = 0
    moved: int = 0
    null_scale: float = 1.0
    invalid: bool = False


def examine(
    evidence: Evidence, limits: Limits, controls: npt.NDArray[np.bool_], *, level: float
) -> Controls:
    """Return the result of the controls.

    Args:
        evidence: All paths; its null scale is not used.
        limits: Their limits.
        controls: Which of them are controls.
        level: The gate's false discovery rate, ``q``.
    """
    effect, freedom = evidence.contrast.effect, evidence.noise.freedom
    error = evidence.error / evidence.null_scale
    known = {"error": error, "freedom": freedom}
    more = one_sided(effect, limits.margin, **known)
    less = one_sided(-effect, limits.margin, **known)
    chosen = controls & np.isfinite(more) & (error > 0)
    count = int(chosen.sum())
    if not count:
        return Controls()
    moved = int((np.minimum(more, less)[chosen] < level / 2.0).sum())
    scale = 1.0
    if count >= FEWEST:
        upper = special.stdtr(freedom[chosen], -np.abs(effect[chosen]) / error[chosen])
        scores = -special.ndtri(np.maximum(upper, 1e-300))
        scale = max(1.0, _NORMAL_MAD * float(np.median(scores)))
    return Controls(count, moved, scale, invalid=moved >= 2 and moved > 2.0 * level * count)

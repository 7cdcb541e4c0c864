"""Changes that all paths share, with the machine or the program as a possible cause.

If the base was recorded at another time, or the same side always ran first, clocks and temperature
change all paths of a kind alike: the kernels in one way, the elapsed times of the host in another.
Canary kernels can show this for kernels; without them only the part of a change beyond that of the
median path of its kind counts or, with too few tested paths, the part beyond the usual difference
between recordings. Smaller changes are undecided: they are not regressions, but not unchanged
either.
"""

from __future__ import annotations

import math

import numpy as np

from proton_bench.gate.statistics.decision import (
    FEWEST_PATHS,
    Evidence,
    Limits,
    changed_for_certain,
    one_sided,
)
from proton_bench.model.arrays import Mask

_LEVEL = 0.05


def controls_moved(evidence: Evidence, limits: Limits, controls: Mask) -> bool:
    """Return whether too many of the negative controls show a change beyond the margin.

    Args:
        evidence: All paths.
        limits: Their limits.
        controls: Which of them are controls.
    """
    effect, error = evidence.effect, evidence.error
    known = {"error": error, "freedom": evidence.freedom}
    more = one_sided(effect, limits.margin, **known)
    less = one_sided(-effect, limits.margin, **known)
    chosen = controls & np.isfinite(more) & (error > 0)
    count = int(chosen.sum())
    moved = int((np.minimum(more, less)[chosen] < _LEVEL / 2.0).sum())
    return moved >= 2 and moved > 2.0 * _LEVEL * count


# Two recordings of one program differ by more less than once in a thousand times, if the shift of
# each has a standard deviation of 1.5 %: inferred from reports of 0.4 to 4 % between days.
_USUAL = 3.09 * math.sqrt(2.0) * 0.015
# A larger shift says that the machine was not the same.
LARGEST_SHIFT = 0.02


def common_shift(evidence: Evidence, paths: Mask) -> float:
    """Return the median effect of the tested paths on the log scale, 0 for too few.

    Args:
        evidence: All checks.
        paths: Those of one kind that are of a path of its own.
    """
    effects = evidence.effect[evidence.tested & paths]
    return float(np.median(effects)) if len(effects) >= FEWEST_PATHS else 0.0


def explained_by_shift(
    evidence: Evidence, limits: Limits, paths: Mask, *, looser: float = 1.0
) -> Mask:
    """Return which changes vanish beyond the common shift.

    The shift makes most paths significant, so the remaining changes are a family of their own.

    Args:
        evidence: All checks.
        limits: Their limits.
        paths: Those of one kind that are of a path of its own; the others of this kind are decided
            by them.
        looser: How many times as much as kernels this kind usually shifts.
    """
    effect = evidence.effect
    beyond = effect - common_shift(evidence, paths)
    if int((evidence.tested & paths).sum()) < FEWEST_PATHS:
        beyond = effect - np.clip(effect, -looser * _USUAL, looser * _USUAL)
    remains = changed_for_certain(evidence, beyond, limits)
    found: Mask = evidence.tested & ~remains
    return found

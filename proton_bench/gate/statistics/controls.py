"""Negative controls: paths that cannot have changed.

A kernel whose compiled code, launch geometry and argument types are the same on both sides runs the
same instructions. Such negative controls show false changes of this experiment: if more than 10 %
of them, and at least two, show a change beyond the margin, each tested at 5 %, the experiment is
void.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.gate.statistics.decision import Evidence, Limits, one_sided

__all__ = ["Controls", "examine"]

_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Controls:
    """Result of the negative controls of an experiment.

    Attributes:
        count: Controls with a measured effect.
        moved: Those that show a change beyond the margin.
        invalid: Whether too many moved.
    """

    count: int = 0
    moved: int = 0
    invalid: bool = False


def examine(evidence: Evidence, limits: Limits, controls: npt.NDArray[np.bool_]) -> Controls:
    """Return the result of the controls.

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
    return Controls(count, moved, invalid=moved >= 2 and moved > 2.0 * _LEVEL * count)

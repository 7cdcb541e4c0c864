"""Flops that the program declares, beside those that its code or torch's formulas say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.metrics.formula import FLOPS_WIDTHS
from proton_bench.analysis.metrics.values import own_numbers
from proton_bench.model import preorder
from proton_bench.model.arrays import Floats
from proton_bench.model.profile import Profile

DERIVED_FLOPS = "derived_flops"
_DECLARED = ("flops", *(f"flops{width}" for width in FLOPS_WIDTHS))
_ALIKE = 0.02


@dataclass(frozen=True, slots=True)
class FlopsDifference:
    """Rows of one name whose declared flops differ from derived ones.

    Attributes:
        name: Their name.
        declared: What the program declared for them, or for the rows below.
        derived: What the code or torch's formulas say.
    """

    name: str
    declared: float
    derived: float


def flops_differences(profile: Profile) -> tuple[FlopsDifference, ...]:
    """Return what differs by more than 2 %, the largest difference first."""
    if DERIVED_FLOPS not in profile.columns:
        return ()
    derived = own_numbers(profile, DERIVED_FLOPS)
    declared = sum((own_numbers(profile, name) for name in _DECLARED), np.zeros(len(profile)))
    below = preorder.sums(profile.parents, derived), preorder.sums(profile.parents, declared)
    compared = ((derived > 0) | (declared > 0)) & (below[0] > 0) & (below[1] > 0)
    sums: dict[str, Floats] = {}
    for row in np.flatnonzero(compared).tolist():
        own = np.array([below[1][row], below[0][row]])
        sums[profile.name(row)] = sums.get(profile.name(row), np.zeros(2)) + own
    found = [FlopsDifference(name, *map(float, each)) for name, each in sums.items()]
    found = [each for each in found if abs(each.derived - each.declared) > _ALIKE * each.declared]
    return tuple(sorted(found, key=lambda each: -abs(each.derived - each.declared)))

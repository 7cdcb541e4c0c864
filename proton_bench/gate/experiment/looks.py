"""When an experiment looks at its pairs, and how much each look may err.

Pairs are added until every path is decided or none are left to add. Each look at the same pairs is
another chance for a false alarm, so that the looks share it (alpha spending; Lan, DeMets 1983,
Biometrika 70:659): half for the first look at which a path can fail, half of the rest for the next,
and all of the rest for the last. The chances add up to 1 however the looks depend on one another.
Separations by states need no shares: `gate.statistics.states`.
"""

from __future__ import annotations

from dataclasses import dataclass

from proton_bench.gate.statistics.power import RECOMMENDED_PAIRS

__all__ = ["FIRST_PAIRS", "Look", "looks"]

# Enough for most paths of unchanged code to be certainly the same.
FIRST_PAIRS = 4


@dataclass(frozen=True, slots=True)
class Look:
    """One look.

    Attributes:
        pairs: Pairs so far.
        part: Share of the false alarms that noise may cause in this look.
    """

    pairs: int
    part: float


def looks(most: int, fewest: int = FIRST_PAIRS) -> tuple[Look, ...]:
    """Return the looks of an experiment: every two pairs, so that both orders occur as often.

    Args:
        most: Pairs of the last look.
        fewest: Pairs of the first look.
    """
    first = min(max(fewest + fewest % 2, FIRST_PAIRS), most)
    counts = [*range(first, most, 2), most]
    left, found = 1.0, []
    for count in counts:
        can_fail = count >= RECOMMENDED_PAIRS
        part = left if count == most or not can_fail else left / 2.0
        left -= part if can_fail else 0.0
        found.append(Look(count, part))
    return tuple(found)

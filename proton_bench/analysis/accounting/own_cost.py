"""The profiler's estimate of its own cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from proton_bench.analysis.accounting.host_time import host_recorded_ns, run_ns
from proton_bench.model.profile import Profile

if TYPE_CHECKING:
    from proton_bench.analysis.run import Run


_MOST_NS = 2.0**63
# A difference in cost is reported if it exceeds this factor and this share of a run.
_FACTOR = 1.5
_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class OwnCost:
    """The profiler's own estimated cost.

    Attributes:
        cost_ns: Cost of recording in the recorded processes.
        run_ns: Duration of the run, None if the file does not say.
        recorded_ns: Time of the main thread in recorded work, None if it was not sampled.
    """

    cost_ns: float
    run_ns: int | None = None
    recorded_ns: int | None = None

    @property
    def whole_ns(self) -> int | None:
        """What the share is of: the recorded work, or the run where that is not known."""
        return self.recorded_ns or self.run_ns

    @property
    def share(self) -> float | None:
        """The cost as a share of `whole_ns`; above 1 if many processes are merged."""
        return None if self.whole_ns is None else self.cost_ns / self.whole_ns


def own_cost(profile: Profile) -> OwnCost | None:
    """Return the cost of recording, None if the file does not say."""
    facts = profile.provenance
    cost = facts.get("estimated_cost_ns")
    if not isinstance(cost, int | float) or isinstance(cost, bool) or not 0 <= cost < _MOST_NS:
        return None
    return OwnCost(cost, run_ns(profile), host_recorded_ns(profile))


def costs_differ(base: Sequence[Run], new: Sequence[Run]) -> tuple[float, float] | None:
    """Return the median costs (ns) of both sides if they differ significantly.

    They do if one is 1.5 times the other, and the difference is 1 % of a run or more. None
    otherwise, or if the cost of a run is unknown.
    """
    sides = [[own_cost(run.profile) for run in side] for side in (base, new)]
    known = [[cost for cost in side if cost is not None] for side in sides]
    if [len(side) for side in known] != [len(side) for side in sides] or not all(known):
        return None
    first, second = (median(cost.cost_ns for cost in side) for side in known)
    lengths = [cost.run_ns for side in known for cost in side if cost.run_ns is not None]
    is_large = abs(second - first) >= _SHARE * min(lengths, default=0)
    low, high = sorted((first, second))
    return (first, second) if is_large and high > 0 and high >= _FACTOR * low else None

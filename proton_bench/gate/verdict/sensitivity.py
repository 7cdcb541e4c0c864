"""What noise hides from a gate, and which statistic and threshold the next one can hold here.

The runs at hand show the noise of this machine and program, for each statistic that their samples
have. So many pairs hold a threshold T by a statistic if a change by T is found nine times in ten
(`power`) on these:

- single paths, but for those that together have at most 5 % of the time,
- the whole run, and each scope with more than 5 % of the time.

Unchanged code passes by such a threshold. The choice of a statistic looks at the noise and at no
change. It is advice for the next gate, whose runs are new, and changes nothing of the present one:
choosing by the runs that are decided would give noise another chance for a false alarm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.gate.verdict.result import UNDECIDED_SHARE

__all__ = ["STATISTICS", "Sensitivity", "advice", "sensitivity_of"]

Numbers = npt.NDArray[np.float64]

STATISTICS = ("median", "p25", "min")
# Larger changes, on the log scale, are of no use.
_LARGEST = 100.0
_MOST_PERCENT = 1000.0  # noise that hides more hides every change
# Another statistic is worth a change of the thresholds if it holds this part of them, or less.
_BETTER = 0.8
# Thresholds to choose from, in percent; larger ones are of no use.
_STEPS = (0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)
# Larger thresholds, in percent, let too much pass.
_COARSE = 10


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Changes that a gate by one statistic would find nine times in ten, as shares.

    Attributes:
        metric: The statistic.
        path: Of single paths.
        run: Of the whole run; NaN if it is not gated.
        held: Least threshold that can be held; infinite if the noise is unknown.
    """

    metric: str
    path: float
    run: float
    held: float


def sensitivity_of(
    metric: str, paths: Numbers, shares: Numbers, *, totals: Numbers, run: Numbers
) -> Sensitivity:
    """Return the sensitivity of a statistic from what its checks would find, as logarithms.

    Args:
        metric: The statistic.
        paths: Of single paths.
        shares: Their shares of the time.
        totals: Of the whole run and of large scopes.
        run: Of the whole run alone; empty if it is not gated.
    """
    order = np.argsort(paths)[::-1]
    upto = np.cumsum(shares[order])
    counting = paths[order][upto > UNDECIDED_SHARE * upto[-1]] if len(paths) else paths
    path = counting[0] if len(counting) else math.inf
    whole = _part(run[0]) if len(run) else math.nan
    return Sensitivity(metric, _part(path), whole, _part(max([path, *totals.tolist()])))


def _part(logarithm: float) -> float:
    return math.inf if logarithm > _LARGEST else math.expm1(logarithm)


def advice(asked: str, seen: Sequence[Sensitivity]) -> str:
    """Return what the noise hides and what the next gate can hold, "" if no statistic is known.

    Args:
        asked: The statistic of the present gate.
        seen: What each statistic would see.
    """
    now = next((each for each in seen if each.metric == asked), None)
    best = min(seen, key=lambda each: each.held, default=None)
    if now is None or best is None or math.isinf(best.held):
        return ""
    if best.held > _BETTER * now.held:
        best = now
    said = f"by {asked}, noise hides {_hidden(now)}"
    if best is not now:
        said += f", by {best.metric} {_hidden(best)}"
    step = next((each for each in _STEPS if each >= 100.0 * best.held), None)
    if step is not None:
        said += f": gate next time with the threshold {best.metric}:{step:g}%"
    if step is None or step > _COARSE:
        said += (
            "; smaller changes need more launches of each path in a run, more pairs, or a quieter "
            "machine"
        )
    return said


def _hidden(seen: Sensitivity) -> str:
    of_run = "" if math.isnan(seen.run) else f" and {_changes(seen.run)} of the whole run"
    return f"{_changes(seen.path)} of a path{of_run}"


def _changes(part: float) -> str:
    percent = 100.0 * part
    if percent >= _MOST_PERCENT:
        return "every change"
    return f"changes below {percent:.1f} %" if percent < 9.95 else f"changes below {percent:.0f} %"

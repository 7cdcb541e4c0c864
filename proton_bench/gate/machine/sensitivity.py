"""What noise hides from a gate, and which statistic and threshold the next one can hold here.

The runs at hand show the noise of this machine and program, for each statistic that their samples
have. With the pairs of the experiment a gate by that statistic would find::

    of single paths: least T such that paths that need more than T have at most 5 %
                     of the time: by this threshold unchanged code passes
    of a whole run:  the same of the sum over the paths of statistic times launches

The choice of a statistic looks at the noise and at no change. It is advice for the next gate, whose
runs are new, and changes nothing of the present one: choosing by the runs that are judged would
give noise another chance for a false alarm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.gate.statistics.evidence import Background, contrast_of, weigh
from proton_bench.gate.statistics.power import detectable
from proton_bench.gate.statistics.timing import FALSE_ALARMS, Evidence

__all__ = [
    "STATISTICS",
    "Sensitivity",
    "advice",
    "is_of_launches",
    "sensitivity_of",
]

Numbers = npt.NDArray[np.float64]

STATISTICS = ("median", "mean", "p25", "min")
_MAY_BE_UNDECIDED = 0.05
# Larger changes, on the log scale, are of no use.
_LARGEST = 100.0
# Another statistic is worth a change of the thresholds if it sees this part of the change, or less.
_BETTER = 0.8
# Larger thresholds, in percent, let too much pass.
_COARSE = 10
# Thresholds to choose from, in percent; beyond the last one no statistic is of use.
_STEPS = (0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Changes that a gate by one statistic would find nine times in ten, as shares.

    Attributes:
        metric: The statistic.
        path: Of single paths.
        run: Of the whole run; NaN if unknown.
    """

    metric: str
    path: float
    run: float


def is_of_launches(metric: str) -> bool:
    """Return whether a metric is a typical time of one launch, for which another can stand in."""
    return metric in STATISTICS or (metric.startswith("p") and metric[1:2].isdecimal())


def sensitivity_of(
    metric: str,
    evidence: Evidence,
    shares: Numbers,
    *,
    totals: tuple[Numbers, Numbers],
    order: Sequence[float],
    pairs: int,
) -> Sensitivity:
    """Return what a gate by a statistic would see.

    Args:
        metric: The statistic.
        evidence: Of the runs at hand, by this statistic.
        shares: Share of each path in the time of a run.
        totals: Of each base run and of each new run; NaN if unknown.
        order: See `contrast_of`.
        pairs: Pairs of the next gate, or runs on each side.
    """
    checks = int(evidence.tested.sum())
    level = FALSE_ALARMS / 2.0 / max(checks, 1)
    found = np.where(evidence.tested, _detectable(evidence, level, pairs), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.where(side > 0.0, np.log(side), np.nan)[:, None] for side in totals]
    nothing = Background(np.zeros(1), np.zeros(1), (metric,))
    whole = weigh(contrast_of(logs[0], logs[1], order), nothing, fewest_runs=2)
    of_run = _detectable(whole, FALSE_ALARMS / 2.0 / (checks + 1), pairs)
    return Sensitivity(metric, _held(found, shares), _part(of_run[0]))


def _detectable(evidence: Evidence, level: float, pairs: int) -> Numbers:
    """Return what so many pairs would see with the noise of the pairs at hand, as logarithms."""
    runs = np.maximum(evidence.contrast.runs, 2).astype(np.float64)
    variance = evidence.noise.variance * evidence.contrast.scale * runs / pairs
    error = np.sqrt(np.maximum(variance, evidence.resolution))
    return detectable(level, error, evidence.noise.freedom * (pairs - 1.0) / (runs - 1.0))


def _held(found: Numbers, shares: Numbers) -> float:
    """Return the least threshold that leaves little undecided, as a share; infinite if none."""
    order = np.argsort(found)[::-1]
    before = np.cumsum(shares[order])
    total = before[-1] if len(before) else 0.0
    held = found[order][before > _MAY_BE_UNDECIDED * total] if total > 0.0 else found[order]
    return _part(held[0]) if len(held) else math.inf


def _part(logarithm: float) -> float:
    return math.expm1(logarithm) if not logarithm > _LARGEST else math.inf


def advice(asked: str, seen: Sequence[Sensitivity]) -> str:
    """Return what the noise hides and what the next gate can hold, "" if no statistic is known.

    Args:
        asked: The statistic of the present gate.
        seen: What each statistic would see.
    """
    by_name = {each.metric: each for each in seen}
    now, best = by_name.get(asked), min(seen, key=lambda each: each.path, default=None)
    if now is None or best is None or math.isinf(best.path):
        return ""
    if best.path > _BETTER * now.path:
        best = now
    said = f"noise hides changes below {_both(now)} by {asked}"
    if best is not now:
        said += f"; by {best.metric} a gate would see {_both(best)}"
    step = next((each for each in _STEPS if each >= 100.0 * best.path), None)
    if step is not None:
        said += f": gate next time with -t '{best.metric}:{step:g}%'"
    if step is None or step > _COARSE:
        said += "; smaller changes need more launches of each path in a run, or a quieter machine"
    return said


def _both(seen: Sensitivity) -> str:
    of_run = f" and {_percent(seen.run)} of the whole run" if math.isfinite(seen.run) else ""
    return f"{_percent(seen.path)} of a path{of_run}"


def _percent(part: float) -> str:
    percent = 100.0 * part
    return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"

"""Notes on a whole gate, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.analysis.selector import Selectors
from proton_bench.gate.machine import Finding, Tier
from proton_bench.gate.policy import PEAK, Policy, Threshold
from proton_bench.gate.verdict.checks import Check, ThresholdsByPath
from proton_bench.gate.verdict.measured import Measured
from proton_bench.gate.verdict.result import UNDECIDED_SHARE, Note, Reason
from proton_bench.model.arrays import Floats

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
    metric: str, paths: Floats, shares: Floats, *, totals: Floats, run: Floats
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


NO_BASE_RUNS = Note(Reason.NO_BASE, "there is no base run to compare with; record one")
NOTHING_MATCHED = Note(
    Reason.NO_BASE,
    "no measured path of the base is in the new runs; check that both are runs of the same program",
)
NOTHING_GATED = Note(
    Reason.NOTHING_GATED,
    "no path has enough of the time to be gated; lower `share`, or name paths in a threshold",
    voids=True,
)
ORDER_CONFOUNDED = Note(
    Reason.ORDER,
    "the same side ran first in every pair, so a drift of the machine looks like a change and no "
    "path can fail; alternate which side runs first",
)
CONTROLS_MOVED = Note(
    Reason.MACHINE,
    "kernels whose code did not change seem to have changed too, so these runs say nothing about "
    "the others; run again on a quieter machine",
    voids=True,
)
CANARY_MOVED = Note(
    Reason.NOT_COMPARABLE,
    "the canary kernels ran certainly more than 1 % slower or faster on one side, so the machine's "
    "speed changed; run again",
)
COMMON_SHIFT = Note(
    Reason.MACHINE,
    "most paths changed alike, and the cause may be the machine or the program; record both sides "
    "in turn, or with canary kernels",
    voids=True,
)
ELAPSED_SHIFT = Note(
    Reason.MACHINE,
    "the elapsed times of most scopes changed alike, and the cause may be the machine or the "
    "program; record both sides in turn",
    voids=True,
)
SHIFTS = (COMMON_SHIFT, ELAPSED_SHIFT)
GLOBAL_SHIFT = Note(
    Reason.NOTICE,
    "most paths changed alike; if the canary kernels did not, the cause is the program or its "
    "tools, not the machine",
)
SHARED_NOISE = Note(
    Reason.NOTICE,
    "paths share noise that hides changes; some were found, and are shown, without this noise",
)
INSTRUCTIONS_COUNTED = Note(
    Reason.TOO_NOISY,
    "instructions were counted, and other work on the machine hardly changes their number: the "
    "threshold instructions:1% finds paths that need more of them",
)
_TIERS = {
    Tier.HARD: (Reason.NOT_COMPARABLE, "runs of these cannot be compared"),
    Tier.UNIT: (
        Reason.MACHINE,
        "units of one model differ by several percent; record both sides in turn on one of them",
    ),
    Tier.TOOL: (Reason.NOTICE, "a change may come from the tools"),
    Tier.STATE: (Reason.MACHINE, "the runs were disturbed; run them again"),
}


def notes_on(findings: Sequence[Finding], policy: Policy) -> tuple[Note, ...]:
    """Return one note for each tier of findings, hardest first."""
    notes = []
    for tier, (reason, meaning) in _TIERS.items():
        chosen = [each for each in findings if each.tier is tier]
        if not chosen or (tier is Tier.HARD and policy.ignore_devices):
            continue
        listed = "; ".join(
            f"{each.fact}: {each.base or 'nothing'} before, {each.new or 'nothing'} now"
            for each in chosen
        )
        text = f"{listed}. {meaning[0].upper()}{meaning[1:]}"
        notes.append(Note(reason, text, voids=tier is Tier.STATE))
    return tuple(notes)


def unmatched(measured: Measured, policy: Policy, checks: Sequence[Check]) -> tuple[Note, ...]:
    """Return notes on thresholds of the policy that match nothing."""
    tree = measured.comparison.tree
    base, new = (each.any(axis=0) for each in measured.sides(measured.present))
    notes = []
    if not bool((base & new & ~measured.canary).any()):
        notes.append(NOTHING_MATCHED)
    elif not checks and any(not each.is_launch_count for each in policy.thresholds):
        notes.append(NOTHING_GATED)
    named = [each for each in policy.thresholds if each.selector and each.is_written]
    selectors = Selectors(each.selector for each in named)
    selected = selectors.of_tree(tree)
    totals = [each.any(axis=0) for each in measured.sides(measured.inclusive > 0.0)]
    # What the metric of a scope without launches may be; one-sided elapsed times have a note.
    masks = {
        "total": totals[0] & totals[1],
        "wall": np.isfinite(measured.walls()).any(axis=0),
        PEAK: np.isfinite(measured.peaks()).any(axis=0),
        "": base | new,
    }
    matched: dict[str, set[int]] = {}
    for metric, mask in masks.items():
        found = 0
        for row in np.flatnonzero(mask & ~measured.canary).tolist():
            found |= selected[row]
        matched[metric] = set(selectors.chosen(found))
    for place, each in enumerate(named):
        if place not in matched[""] | matched.get(_of_scopes(each, named), set()):
            text = f"threshold {str(each)!r} matches no measured path; check its glob"
            notes.append(Note(Reason.NOTHING_GATED, text, voids=True))
    return tuple(notes)


def refused(measured: Measured, policy: Policy) -> tuple[Note, ...]:
    """Return notes on thresholds of the new side that would loosen those of the base."""
    by_path = ThresholdsByPath(policy.thresholds, measured.comparison.tree)
    for row in range(1, len(measured.comparison.tree)):
        by_path.of_row(row)
    return tuple(
        Note(
            Reason.NOTICE,
            f"threshold {str(each)!r} of the new side is looser than {_amounts(stricter)}, which "
            "holds without it and was used; it counts once the base has it",
        )
        for each, stricter in by_path.refused.items()
    )


def _amounts(threshold: Threshold) -> str:
    return "&".join(map(str, threshold.amounts))


def _of_scopes(threshold: Threshold, named: Sequence[Threshold]) -> str:
    """Return the metric by which a threshold may hold scopes without launches.

    A threshold without a metric is one of the median and one of the total.
    """
    of_total = replace(threshold, metric="total")
    return "total" if threshold.metric == "median" and of_total in named else threshold.metric

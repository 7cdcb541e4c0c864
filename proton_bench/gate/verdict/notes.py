"""Notes on a whole gate, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from proton_bench.analysis.selector import Selectors
from proton_bench.gate.machine import Finding, Tier
from proton_bench.gate.policy import Policy, Threshold
from proton_bench.gate.verdict.checks import Check, ThresholdsByPath
from proton_bench.gate.verdict.measured import Measured
from proton_bench.gate.verdict.result import Note, Reason

__all__ = [
    "CANARY_MOVED",
    "COMMON_SHIFT",
    "CONTROLS_MOVED",
    "ELAPSED_SHIFT",
    "GLOBAL_SHIFT",
    "INSTRUCTIONS_COUNTED",
    "NOTHING_GATED",
    "NOTHING_MATCHED",
    "NO_BASE_RUNS",
    "ORDER_CONFOUNDED",
    "SHARED_NOISE",
    "SHIFTS",
    "notes_on",
    "refused",
    "unmatched",
]

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
    elif not checks and any(not each.is_structural for each in policy.thresholds):
        notes.append(NOTHING_GATED)
    named = [each for each in policy.thresholds if each.selector and each.is_written]
    selectors = Selectors(each.selector for each in named)
    selected = selectors.of_tree(tree)
    totals = [each.any(axis=0) for each in measured.sides(measured.inclusive > 0.0)]
    # What the metric of a scope without launches may be; one-sided elapsed times have a note.
    masks = {
        "total": totals[0] & totals[1],
        "wall": np.isfinite(measured.walls()).any(axis=0),
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

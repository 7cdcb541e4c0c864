"""Reasons of the gate in words, with what to do about them."""

from __future__ import annotations

import math

from proton_bench.gate.statistics.decision import FALSE_ALARMS
from proton_bench.gate.verdict.result import GateRow, Reason, Verdict
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

__all__ = ["MEANINGS", "needed_text", "noise_text", "part_text", "reasons_text", "runs_text"]

MEANINGS = {
    Reason.TOO_NOISY: "too noisy for so few runs",
    Reason.TOO_FEW_RUNS: "fewer runs than times need",
    Reason.TIMER_TICK: "shorter than the timer can resolve, give each launch more work",
    Reason.NO_VALUES: "not recorded or not positive, choose another metric",
    Reason.MACHINE: "the machine may have changed, record both sides in turn",
    Reason.ORDER: "the same side always ran first, let the sides take turns",
    Reason.CLOCK: "no change in cycles, so the clock changed: lock it or run again",
    Reason.SAME_CODE: "the same compiled code, so memory or its surroundings changed",
    Reason.CODE_CHANGED: "different compiled code",
    Reason.QUARANTINE: "quarantined by the policy",
    Reason.NO_BASE: "there is nothing to compare with",
    Reason.NOTHING_GATED: "a threshold matches no path",
    Reason.PATHS_DIFFER: "paths of one side alone",
    Reason.NOT_COMPARABLE: "the sides cannot be compared",
    Reason.NOTICE: "noticed",
}
_MORE_RUNS = frozenset({Reason.TOO_NOISY, Reason.TOO_FEW_RUNS})
_MAX_CAUSE = 160


def part_text(part: float) -> str:
    """Return a share without a sign: ``2.9 %``."""
    percent = 100.0 * abs(part)
    if percent >= 100.0:
        return f"{percent:.0f} %"
    if not percent >= 0.1:  # NaN too
        return "<0.1 %" if percent > 0 else "0 %" if percent == 0 else "-"
    return f"{percent:.1f} %"


def reasons_text(row: GateRow, *, paired: bool) -> str:
    """Return what else changed, the reasons of a row's verdict and what to do, "" for none."""
    said = [visible(each, _MAX_CAUSE) for each in row.causes]
    said += [
        noise_text(row) if each is Reason.TOO_NOISY else MEANINGS[each] for each in row.reasons
    ]
    if row.verdict is Verdict.SAME and row.p_worse <= FALSE_ALARMS:
        said.append(f"worse, but by less than the threshold of {part_text(row.limit)}")
    if row.verdict is Verdict.INCONCLUSIVE and not _MORE_RUNS.isdisjoint(row.reasons):
        said.append(needed_text(row, paired=paired))
    return "; ".join(said)


def noise_text(row: GateRow) -> str:
    """Return how much a path varies, or that states of paths leave its change uncertain."""
    if math.isinf(row.findable):
        return "so few runs can all be slow by chance"
    return f"a run varies by {part_text(row.noise)}"


def needed_text(row: GateRow, *, paired: bool) -> str:
    """Return how many runs would decide a row."""
    if row.pairs_needed < 0:
        return "needs too many runs to be practical"
    if not row.pairs_needed:
        return "more runs do not help"
    return f"needs {runs_text(row.pairs_needed, paired=paired)}"


def runs_text(count: int, *, paired: bool) -> str:
    """Return the number of runs needed: ``14 pairs in all``, ``14 runs on each side``."""
    if paired:
        return f"{count_text(count, 'pair')} in all"
    return f"{count_text(count, 'run')} on each side"

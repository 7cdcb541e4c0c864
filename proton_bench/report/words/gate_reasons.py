"""Reasons of the gate in words, with what to do about them."""

from __future__ import annotations

from proton_bench.gate.judge.result import GateRow
from proton_bench.gate.judge.verdict import Reason, Verdict
from proton_bench.gate.policy.threshold import parse_threshold
from proton_bench.support.units import count_text

__all__ = ["MEANINGS", "part_text", "runs_text", "why"]

MEANINGS = {
    Reason.SLOWER: "slower",
    Reason.FASTER: "faster",
    Reason.CHANGED: "changed",
    Reason.BELOW_THRESHOLD: "changed by less than the threshold, if at all",
    Reason.BELOW_FLOOR: "too small to matter",
    Reason.CALLS_AS_ALLOWED: "no more than allowed",
    Reason.NOT_WORSE: "not worse by the threshold",
    Reason.NEEDS_RUNS: "may have changed, more runs would tell",
    Reason.TOO_NOISY: "too noisy for so few runs",
    Reason.TIMER_TICK: "shorter than the timer can resolve, give each launch more work",
    Reason.TOO_FEW_RUNS: "fewer processes than timing needs, record more or store noise",
    Reason.STRUCTURE_ONLY: "one run on each side decides structure only",
    Reason.MISSING_IN_RUNS: "some runs do not have it",
    Reason.NOT_POSITIVE: "a value is 0 or less, which has no ratio",
    Reason.NO_VALUES: "not recorded, choose another metric",
    Reason.QUANTILE_UNKNOWN: "the file does not have this quantile, record again or gate the mean",
    Reason.MEAN_ONLY: "judged by the mean, because single launches were not kept precisely enough",
    Reason.CODE_CHANGED: "different compiled code",
    Reason.CODES_VARY: "several compiled codes on one side",
    Reason.AUTOTUNE_CHOICE: "the autotuner chose differently",
    Reason.CALLS_VARY: "launches differ between runs of a side",
    Reason.COMMON_SHIFT: "no more than most paths changed, record both sides in turn",
    Reason.CLOCK_EXPLAINS: "no change in cycles, so the clock changed: lock it or run again",
    Reason.SAME_BINARY: "the same compiled code, so memory or its surroundings changed",
    Reason.QUARANTINE: "quarantined by the policy",
    Reason.RULE: "decided by a rule of a plugin",
    Reason.NO_BASE_RUNS: "there is no base run",
    Reason.NOTHING_MATCHED: "no path in common",
    Reason.NOTHING_GATED: "no path is large enough",
    Reason.RULE_MATCHED_NOTHING: "a threshold matches no path",
    Reason.ORDER_CONFOUNDED: "the same side always ran first, let the sides take turns",
    Reason.CONTROLS_MOVED: "kernels that did not change seem to have changed too",
    Reason.CANARY_MOVED: "the machine was not the same on both sides",
    Reason.GLOBAL_SHIFT: "most paths changed alike",
    Reason.NOISE_OF_ANOTHER_MACHINE: "stored noise is of another machine",
    Reason.OTHER_DEVICE: "another device",
    Reason.OTHER_UNIT: "another unit of the device, record both sides on one",
    Reason.OTHER_TOOLS: "other tools",
    Reason.DISTURBED: "the runs were disturbed, run them again",
    Reason.PAIRS_LEFT_OUT: "some pairs were disturbed and left out",
    Reason.NEW_PATHS: "the policy forbids new paths",
    Reason.REMOVED_PATHS: "the policy forbids removed paths",
    Reason.LOADED_ALIKE: "both sides loaded the same version of a changed file",
    Reason.CHANGE_NOT_LOADED: "no side loaded a changed file",
    Reason.CHANGED_MEANWHILE: "files were edited between the runs of a side",
    Reason.MODULES_UNKNOWN: "it is unknown which files the sides loaded",
    Reason.AUTOTUNE_FLIP: "an autotuner chose differently in some runs of a side",
}
# Reasons that the columns already show.
_SHOWN = frozenset({Reason.SLOWER, Reason.FASTER, Reason.CHANGED, Reason.BELOW_THRESHOLD})
_MORE_RUNS = frozenset({Reason.NEEDS_RUNS, Reason.TOO_NOISY})


def part_text(part: float) -> str:
    """Return a share without a sign: ``2.9 %``."""
    percent = 100.0 * abs(part)
    if percent >= 100.0:
        return f"{percent:.0f} %"
    if not percent >= 0.1:  # NaN too
        return "<0.1 %" if percent > 0 else "0 %" if percent == 0 else "-"
    return f"{percent:.1f} %"


def why(row: GateRow, *, paired: bool) -> str:
    """Return the reasons of a row's verdict and what to do next, "" for none."""
    said = [MEANINGS.get(each, each.value) for each in row.reasons if each not in _SHOWN]
    said += _floor(row)
    if row.pairs_needed or not _MORE_RUNS.isdisjoint(row.reasons):
        said.append(_needed(row, paired=paired))
    return "; ".join(said)


def _floor(row: GateRow) -> list[str]:
    """Return a note if the row is undecided and its threshold is below the detectable change."""
    asked = parse_threshold(row.threshold).ratio
    if row.verdict is not Verdict.INCONCLUSIVE or asked is None or not row.detectable > asked:
        return []
    return [f"cannot see changes of {part_text(asked)} here, only from {part_text(row.detectable)}"]


def _needed(row: GateRow, *, paired: bool) -> str:
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

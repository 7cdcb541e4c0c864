"""The verdicts of the gate: of a path, its reasons, and of the whole."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["EXIT_CODES", "Reason", "SuiteVerdict", "Verdict"]


class Verdict(StrEnum):
    """The verdict on a path, or on the whole run."""

    REGRESSED = "REGRESSED"
    IMPROVED = "IMPROVED"
    SAME = "SAME"
    INCONCLUSIVE = "INCONCLUSIVE"


class SuiteVerdict(StrEnum):
    """The overall verdict."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    INCOMPARABLE = "INCOMPARABLE"
    NO_BASELINE = "NO-BASELINE"
    ERROR = "ERROR"


EXIT_CODES = {
    SuiteVerdict.PASS: 0,
    SuiteVerdict.FAIL: 1,
    SuiteVerdict.ERROR: 2,
    SuiteVerdict.INCONCLUSIVE: 3,
    SuiteVerdict.INCOMPARABLE: 4,
    SuiteVerdict.NO_BASELINE: 5,
}


class Reason(StrEnum):
    """Reasons of rows and notes. Meanings: `docs/reference/gate_policy.md`."""

    # why a row is undecided
    TOO_NOISY = "too-noisy"
    TOO_FEW_RUNS = "too-few-runs"
    TIMER_TICK = "timer-tick"
    NO_VALUES = "no-values"
    # what else may have made it slower
    MACHINE = "machine"
    ORDER = "order"
    CLOCK = "clock"
    SAME_CODE = "same-code"
    # further notes on a row
    CODE_CHANGED = "code-changed"
    QUARANTINE = "quarantine"
    # of the whole
    NO_BASE = "no-base"
    NOTHING_GATED = "nothing-gated"
    PATHS_DIFFER = "paths-differ"
    NOT_COMPARABLE = "not-comparable"
    NOTICE = "notice"

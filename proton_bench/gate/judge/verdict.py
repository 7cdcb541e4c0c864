"""The verdicts of the gate: of a path, its reasons, and of the whole."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["EXIT_CODES", "UNDECIDED", "Reason", "SuiteVerdict", "Verdict"]


class Verdict(StrEnum):
    """The verdict on a path or a structural change."""

    REGRESSED = "REGRESSED"
    IMPROVED = "IMPROVED"
    SAME = "SAME"
    INCONCLUSIVE = "INCONCLUSIVE"
    NEW = "NEW"
    REMOVED = "REMOVED"
    MOVED = "MOVED"
    CALLS_MORE = "CALLS+"
    CALLS_FEWER = "CALLS-"
    CLOCK = "CLOCK"
    SAME_BINARY = "SAME-BINARY"
    QUARANTINED = "QUARANTINED"
    UNMEASURED = "UNMEASURED"


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

# A path with one of these verdicts is undecided.
UNDECIDED = frozenset({Verdict.INCONCLUSIVE, Verdict.UNMEASURED})


class Reason(StrEnum):
    """Reasons of a path. Meanings: `docs/reference/gate_policy.md`."""

    # why a path is worse, better or the same
    SLOWER = "slower"
    FASTER = "faster"
    CHANGED = "changed"
    BELOW_THRESHOLD = "below-threshold"
    BELOW_FLOOR = "below-floor"
    CALLS_AS_ALLOWED = "calls-as-allowed"
    # why it is unknown
    NOT_WORSE = "not-worse"
    NEEDS_RUNS = "needs-runs"
    TOO_NOISY = "too-noisy"
    TIMER_TICK = "timer-tick"
    TOO_FEW_RUNS = "too-few-runs"
    STRUCTURE_ONLY = "structure-only"
    MISSING_IN_RUNS = "missing-in-runs"
    NOT_POSITIVE = "not-positive"
    NO_VALUES = "no-values"
    QUANTILE_UNKNOWN = "quantile-unknown"
    # further notes
    MEAN_ONLY = "mean-only"
    CODE_CHANGED = "code-changed"
    CODES_VARY = "codes-vary"
    AUTOTUNE_CHOICE = "autotune-choice"
    CALLS_VARY = "calls-vary"
    COMMON_SHIFT = "common-shift"
    CLOCK_EXPLAINS = "clock-explains"
    SAME_BINARY = "same-binary"
    QUARANTINE = "quarantine"
    RULE = "rule"
    # of the whole
    NO_BASE_RUNS = "no-base-runs"
    NOTHING_MATCHED = "nothing-matched"
    NOTHING_GATED = "nothing-gated"
    RULE_MATCHED_NOTHING = "rule-matched-nothing"
    ORDER_CONFOUNDED = "order-confounded"
    CONTROLS_MOVED = "controls-moved"
    CANARY_MOVED = "canary-moved"
    GLOBAL_SHIFT = "global-shift"
    NOISE_OF_ANOTHER_MACHINE = "noise-of-another-machine"
    OTHER_DEVICE = "other-device"
    OTHER_UNIT = "other-unit"
    OTHER_TOOLS = "other-tools"
    DISTURBED = "disturbed"
    PAIRS_LEFT_OUT = "pairs-left-out"
    NEW_PATHS = "new-paths"
    REMOVED_PATHS = "removed-paths"
    # of runs made for the gate
    LOADED_ALIKE = "loaded-alike"
    CHANGE_NOT_LOADED = "change-not-loaded"
    CHANGED_MEANWHILE = "changed-meanwhile"
    MODULES_UNKNOWN = "modules-unknown"
    AUTOTUNE_FLIP = "autotune-flip"

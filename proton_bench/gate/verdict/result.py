"""The result of a gate: one row for each check, the structural changes, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum, StrEnum
from functools import cached_property
from typing import Any

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.gate.machine import CanaryShift, Finding
from proton_bench.gate.policy import PEAK
from proton_bench.gate.statistics.decision import FALSE_ALARMS
from proton_bench.model.metrics.metric import MetricSpec


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


class Kind(StrEnum):
    """What happened to a path."""

    NEW = "NEW"
    REMOVED = "REMOVED"
    MOVED = "MOVED"
    LAUNCHES = "LAUNCHES"


@dataclass(frozen=True, slots=True)
class StructuralChange:
    """One path that is new, removed, moved, or launched more or less often.

    What it costs counts in the totals of the scopes around it.

    Attributes:
        path: Names from below the root, now or, if it was removed, before.
        kind: What happened.
        former_path: Its former path if it moved or was renamed; else ().
        base_calls: Fewest and most launches of the base runs, equal if they agree; 0 for unknown.
        new_calls: The same of the new runs.
        change: Change of the compared metric by launches alone, per run.
        share: Share of the path in the time of a base run; of a new path in that of a new run.
        fails: Whether the policy forbids it.
        reasons: Reasons and further notes.
    """

    path: tuple[str, ...]
    kind: Kind
    former_path: tuple[str, ...]
    base_calls: tuple[float, float]
    new_calls: tuple[float, float]
    change: float
    share: float
    fails: bool
    reasons: tuple[Reason, ...] = ()


SCHEMA = "proton_bench.gate"
VERSION = (3, 0)


@dataclass(frozen=True, slots=True)
class GateRow:
    """The result of one check of one path. Changes are shares: 0.05 is 5 % more.

    Attributes:
        path: Names from below the root; none for the whole run.
        occurrence: Number among the rows with this path, from 0 in the order of the tree.
        metric: What was measured, as in thresholds.
        threshold: The threshold of the path.
        verdict: The verdict.
        reasons: Reasons, the deciding one first.
        named: Whether a selector of the policy chose the path.
        share: The path's share of the time of a base run, or of a new run if that is more; with
            the paths below it for a total.
        base: Typical value of the base runs in the metric's unit; NaN for none.
        new: Typical value of the new runs.
        limit: The share by which the value may grow.
        change: New divided by base, minus 1; NaN if unknown. Where the noise that paths share
            hides the change, it is without this noise.
        low: Lower end of its 95 % interval.
        high: Upper end.
        p_worse: P-value that it got worse by more than the margin, adjusted for all paths.
        noise: Standard deviation of one run, as a share; NaN if unknown.
        pairs_needed: Total pairs that would find the threshold that often; 0 if more do not help or
            are not needed, -1 if it is impractically many.
        base_runs: Processes with a value.
        new_runs: The same of the new side.
        order_effect: Share that running second adds; NaN if unknown.
        same_binary: Whether compiled code, launch and argument types are the same on both sides.
        downgraded: Whether it would have regressed but for its reasons, or probably did.
        is_extra: Whether it is of the host and was not asked for.
        causes: What else changed about a kernel that changed, such as its registers.
        findable: Smallest change for the worse that this gate finds nine times in ten: at least the
            limit, and more where noise or the floors hide this; infinite if so few runs may all
            be slow by chance, whatever the change; NaN if unknown.
        device: Device of the path, if paths of other devices have the same names; else "".
    """

    path: tuple[str, ...]
    occurrence: int
    metric: str
    threshold: str
    verdict: Verdict
    reasons: tuple[Reason, ...]
    named: bool
    share: float
    base: float
    new: float
    limit: float
    change: float
    low: float
    high: float
    p_worse: float
    noise: float
    pairs_needed: int
    base_runs: int
    new_runs: int
    order_effect: float
    same_binary: bool
    downgraded: bool
    is_extra: bool = False
    causes: tuple[str, ...] = ()
    findable: float = math.nan
    device: str = ""

    @property
    def is_total(self) -> bool:
        """Whether it counts what is below the path too."""
        return self.metric in {"total", "wall", PEAK}

    @property
    def is_undecided(self) -> bool:
        """Whether it is undecided if the path got worse.

        The host varies so much that a wide interval alone says nothing.
        """
        if self.verdict is not Verdict.INCONCLUSIVE or Reason.QUARANTINE in self.reasons:
            return False
        return self.downgraded or not self.is_extra


@dataclass(frozen=True, slots=True)
class Note:
    """A note on the whole gate.

    Attributes:
        reason: The reason.
        text: The same as text, with what to do.
        voids: Whether the gate cannot pass because of it.
    """

    reason: Reason
    text: str
    voids: bool = False


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate.

    Attributes:
        verdict: Of the whole.
        rows: Rows, worst first.
        structure: Structural changes, in the order of the tree.
        notes: Notes, the deciding one first.
        findings: Differences and disturbances of the runs.
        canaries: Shift of the canary kernels.
        metric: Full name of the recorded metric that aligned the runs.
        statistic: Statistic of fast launches whose sums are the totals, so that slow launches were
            not checked; "" if they were.
        unit: Its unit, also that of values of time.
        paired: Whether the sides were recorded in turn.
        base_runs: Names of the base runs.
        new_runs: Names of the new runs.
        level: Share of gates without a change that may fail.
        inconclusive_passes: Whether an undecided gate exits with 0.
        texts: What reports show instead of recorded names, where that differs.
        comparison: The runs, aligned, without canary kernels and quarantined paths; None if they
            were not compared. Not a part of documents.
    """

    verdict: SuiteVerdict
    rows: tuple[GateRow, ...] = ()
    structure: tuple[StructuralChange, ...] = ()
    notes: tuple[Note, ...] = ()
    findings: tuple[Finding, ...] = ()
    canaries: CanaryShift = field(default_factory=CanaryShift)
    metric: str = ""
    statistic: str = ""
    unit: str = ""
    paired: bool = False
    base_runs: tuple[str, ...] = ()
    new_runs: tuple[str, ...] = ()
    level: float = FALSE_ALARMS
    inconclusive_passes: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)
    comparison: Comparison | None = field(default=None, compare=False, repr=False)

    @property
    def exit_code(self) -> int:
        """0 pass, 1 regression, 2 error, 3 inconclusive, 4 incomparable, 5 no baseline."""
        if self.verdict is SuiteVerdict.INCONCLUSIVE and self.inconclusive_passes:
            return 0
        return EXIT_CODES[self.verdict]

    @property
    def regressions(self) -> tuple[GateRow, ...]:
        """The rows that regressed, worst first."""
        return tuple(row for row in self.rows if row.verdict is Verdict.REGRESSED)

    def to_document(self) -> dict[str, Any]:
        """Return JSON values, with the schema's name and version; NaN becomes null."""
        body: dict[str, Any] = _plain(replace(self, comparison=None))
        del body["comparison"]
        return {
            "schema": SCHEMA,
            "version": list(VERSION),
            "exit_code": self.exit_code,
            **body,
        }


_AS_IT_IS = frozenset((str, int, bool, type(None)))


_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields_of(kind: type) -> tuple[str, ...]:
    """Return the fields of a dataclass, none of another class."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(e.name for e in fields(kind)) if is_dataclass(kind) else ()
    return _FIELDS[kind]


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_IT_IS:  # most of the values of a long result
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if names := _fields_of(kind):
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# So much of the time of a run may stay undecided.
UNDECIDED_SHARE = 0.05


def sum_up(
    rows: Sequence[GateRow], structure: Sequence[StructuralChange], notes: Sequence[Note]
) -> SuiteVerdict:
    """Return the overall verdict."""
    if any(row.verdict is Verdict.REGRESSED for row in rows):
        return SuiteVerdict.FAIL
    if any(change.fails for change in structure):
        return SuiteVerdict.FAIL
    reasons = {note.reason for note in notes}
    if Reason.NOT_COMPARABLE in reasons:
        return SuiteVerdict.INCOMPARABLE
    if Reason.NO_BASE in reasons:
        return SuiteVerdict.NO_BASELINE
    undecided = [row for row in rows if row.is_undecided]
    if (
        any(note.voids for note in notes)
        or any(_is_decisive(row) for row in undecided)
        or undecided_share(rows) > UNDECIDED_SHARE
    ):
        return SuiteVerdict.INCONCLUSIVE
    return SuiteVerdict.PASS


def undecided_share(rows: Sequence[GateRow]) -> float:
    """Return the share of undecided single paths in the gated time; a path counts once."""
    single = [row for row in rows if not (row.is_total or row.is_extra)]
    gated = {(row.path, row.occurrence): row.share for row in single}
    undecided = {(row.path, row.occurrence): row.share for row in single if row.is_undecided}
    total = sum(gated.values())
    return sum(undecided.values()) / total if total > 0.0 else float(bool(undecided))


def worst_findable(rows: Sequence[GateRow]) -> GateRow | None:
    """Return the path with the largest findable change of those with 95 % of the gated time."""
    single = [
        row
        for row in rows
        if not (row.is_total or row.is_extra or Reason.QUARANTINE in row.reasons)
    ]
    single.sort(key=lambda row: row.findable if math.isfinite(row.findable) else math.inf)
    total, seen = sum(row.share for row in single), 0.0
    for row in single:
        seen += row.share
        if seen >= (1.0 - UNDECIDED_SHARE) * total:
            return row if math.isfinite(row.findable) else None
    return None


def _is_decisive(row: GateRow) -> bool:
    """Return whether an undecided row alone keeps the gate from passing."""
    if row.named or row.downgraded or row.is_extra:
        return True
    return row.is_total and row.share > UNDECIDED_SHARE


# A cause is named from this share of a change on.
_GOOD_PART = 0.2
_OF_ONE_TIME = frozenset({"median", "mean", "total", "wall"})


@dataclass(frozen=True)  # no slots: reports ask for the same for each of thousands of rows
class Outcome:
    """A gate for reports.

    Attributes:
        result: The result of the gate.
        explanation: Explanation of the change of the whole run, or "".
        problem: Why nothing was compared, with the verdict ERROR or NO-BASELINE; else "".
    """

    result: GateResult
    explanation: str = ""
    problem: str = ""

    @classmethod
    def failed(cls, problem: str) -> Outcome:
        """Return the outcome of a gate that could not read its input."""
        return cls(GateResult(SuiteVerdict.ERROR), problem=problem)

    @property
    def telling_rows(self) -> tuple[GateRow, ...]:
        """The rows worth looking at, worst first."""
        return self._parts[0]

    @property
    def calm_rows(self) -> tuple[GateRow, ...]:
        """The other rows, worst first.

        They are the same on both sides, or of the host and little is known, or say of a scope what
        a row above says: where elapsed time is all there is, the typical entry of a scope and its
        total are nearly one number.
        """
        return self._parts[1]

    @cached_property
    def _parts(self) -> tuple[tuple[GateRow, ...], tuple[GateRow, ...]]:
        telling: dict[object, GateRow] = {}
        calm = []
        for row in self.result.rows:
            is_time = self._is_elapsed and row.metric in _OF_ONE_TIME
            metric = "wall" if is_time else row.metric
            key = (row.path, row.occurrence, row.verdict, metric)
            if _is_calm(row) or key in telling:
                calm.append(row)
            else:
                telling[key] = row
        return tuple(telling.values()), tuple(calm)

    @cached_property
    def structure(self) -> tuple[StructuralChange, ...]:
        """Structural changes: failing ones first, then by their time."""
        return tuple(
            sorted(self.result.structure, key=lambda each: (not each.fails, -abs(each.change)))
        )

    def grown_below(self, row: GateRow) -> list[StructuralChange]:
        """Return structural changes that took a good part of what a row took more, largest first.

        They are below its path; or at the path itself, if the row is a total.
        """
        return [
            each
            for each in self._grown.get(row.path, ())
            if (row.is_total or each.path != row.path) and self._explains(each.change, row)
        ]

    def slower_below(self, row: GateRow) -> list[tuple[str, ...]]:
        """Return regressed paths below a row with a good part of what it took more, worst first."""
        return [
            path
            for path in self._slower.get(row.path, ())
            if self._explains(self._changes.get(path, 0.0), row)
        ]

    def _explains(self, change: float, row: GateRow) -> bool:
        """Return whether it is a good part of what the row took more, in the unit of the result."""
        if row.metric == PEAK:
            return False
        if row.is_total:
            return change >= _GOOD_PART * (row.new - row.base)
        # Launches of a path count nothing below it, but times of entries do.
        return self._is_elapsed and change >= _GOOD_PART * self._changes.get(row.path, math.inf)

    @cached_property
    def _is_elapsed(self) -> bool:
        return MetricSpec(self.result.metric).base == "wall"

    @cached_property
    def _grown(self) -> Mapping[tuple[str, ...], Sequence[StructuralChange]]:
        """Structural changes that took time, largest first, by each path at or above them."""
        found: dict[tuple[str, ...], list[StructuralChange]] = {}
        for each in sorted(self.structure, key=lambda each: -each.change):
            if each.change > 0.0:
                for depth in range(len(each.path) + 1):
                    found.setdefault(each.path[:depth], []).append(each)
        return found

    @cached_property
    def _slower(self) -> Mapping[tuple[str, ...], Sequence[tuple[str, ...]]]:
        """Paths that regressed, worst first, by each path above them."""
        found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        paths = dict.fromkeys(row.path for row in self.result.regressions if not row.is_total)
        for path in paths:
            for depth in range(len(path)):
                found.setdefault(path[:depth], []).append(path)
        return found

    @cached_property
    def _changes(self) -> Mapping[tuple[str, ...], float]:
        """What a run took more in each path that regressed, as far as known."""
        regressed = {row.path for row in self.result.regressions}
        seen = self.result.comparison
        return {} if seen is None or not regressed else _changes_of(seen, regressed)


def _changes_of(
    comparison: Comparison, paths: set[tuple[str, ...]]
) -> dict[tuple[str, ...], float]:
    """Return the change of the rows with each of these paths, without what is below if known."""
    tree = comparison.tree
    changes = (comparison.own or comparison.inclusive).change.tolist()
    names, frames = tree.recorded or tree.strings, tree.frames().tolist()
    above = {path[:depth] for path in paths for depth in range(len(path) + 1)}
    found = dict.fromkeys(paths, 0.0)
    known: list[tuple[str, ...] | None] = [()]
    for row, parent in enumerate(tree.parents.tolist()[1:], start=1):
        before = known[parent]
        path = None if before is None else (*before, names[frames[row]])
        known.append(path if path in above else None)
        if path in found:
            found[path] += changes[row]
    return found


def _is_calm(row: GateRow) -> bool:
    is_open = row.is_undecided or Reason.QUARANTINE in row.reasons or not row.is_extra
    return row.verdict is Verdict.SAME or (row.verdict is Verdict.INCONCLUSIVE and not is_open)

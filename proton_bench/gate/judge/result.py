"""The result of a gate: one row for each check, the structural changes, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.gate.judge.structure import StructuralChange
from proton_bench.gate.judge.verdict import EXIT_CODES, Reason, SuiteVerdict, Verdict
from proton_bench.gate.machine.canary_shift import CanaryShift
from proton_bench.gate.machine.fingerprint import Finding
from proton_bench.gate.statistics.controls import Controls
from proton_bench.gate.statistics.decision import FALSE_ALARMS

__all__ = ["SCHEMA", "VERSION", "GateResult", "GateRow", "Note"]

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
        return self.metric in {"total", "wall"}

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
        controls: Result of the negative controls.
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
    controls: Controls = field(default_factory=Controls)
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

"""What can be said of a row or of the whole run, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proton_bench.model.metrics.counter_columns import COUNTED_TIME
from proton_bench.model.profile import Profile

WHY = "why"  # the column of verdicts in a tree
UNKNOWN = "unknown"

# The closed set of verdicts.
KINDS = (
    "compute:tensor",
    "compute:fp32",
    "compute:fp64",
    "compute:alu",
    "compute:xu",
    "compute:issue",
    "memory:dram",
    "memory:l2",
    "memory:l1",
    "memory:shared",
    "contention",
    "uncoalesced",
    "latency",
    "tail",
    "small-grid",
    "launch-bound",
    "power-capped",
    "copy-engine",
    "waiting",
    "input-bound",
    "compile-bound",
    "overhead",
    "elapsed",
    UNKNOWN,
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One recorded fact.

    Attributes:
        id: Name of the kind of fact, such as ``counter.dram``; the same in every file.
        text: The fact in words. It may hold names from the file.
        value: Its number, None if it has none.
        unit: Unit of the number: "fraction", "ns", "blocks"...
    """

    id: str
    text: str
    value: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a row takes its time.

    Attributes:
        kind: One of `KINDS`.
        short: The verdict in at most 40 characters.
        evidence: What was recorded; for ``unknown`` what is known nevertheless.
        helps: What usually helps, "" for ``unknown``.
        source: Where the rule comes from.
        gain_ns: The most time in ns that the run can save if the cause goes away and the work stays
            the same; None if unknown.
        reason: Why nothing can be said, only for ``unknown``.
        measure: The measurement that would tell, only for ``unknown``.
        share: Part of the row's time that has this verdict, from 0 to 1.
    """

    kind: str
    short: str
    evidence: tuple[Evidence, ...] = ()
    helps: str = ""
    source: str = ""
    gain_ns: float | None = None
    reason: str = ""
    measure: str = ""
    share: float = 1.0

    @property
    def is_known(self) -> bool:
        """Whether something can be said."""
        return self.kind != UNKNOWN


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the whole run that costs time.

    Attributes:
        id: Name of the rule.
        text: The finding in one line. It may hold names from the file.
        evidence: What was recorded.
        helps: What usually helps.
        source: Where the rule comes from.
        gain_ns: The most time in ns that the run can save, never more than the run took.
        own_ns: The part of it that no finding with more specific evidence claims, so that these
            parts can be added up.
        rows: Rows of the profile that it is about, the largest first; empty for the whole run.
    """

    id: str
    text: str
    evidence: tuple[Evidence, ...]
    helps: str
    source: str
    gain_ns: float
    own_ns: float
    rows: tuple[int, ...] = ()


# Pools of time that findings claim parts of, besides rows: of devices between their work, before
# and after it, in collectives and at work, and of the host outside of recorded work.
BETWEEN, OUTSIDE, WAITING, BUSY = "between", "outside", "waiting", "busy"
OTHER_CODE = "other code"


@dataclass(frozen=True, slots=True)
class Claim:
    """What one rule found.

    Attributes:
        text: The finding in one line.
        evidence: What was recorded; never empty.
        pools: Time that it can save by pool, in ns.
        rows: Time that it can save by row of the folded profile, in ns.
        helps: What helps in this case, if it is more than the rule knows.
        is_in_steps: Whether each step has it, so that a longer run has more whatever the rule says.
    """

    text: str
    evidence: tuple[Evidence, ...]
    pools: Mapping[str, float] = field(default_factory=dict)
    rows: Mapping[int, float] = field(default_factory=dict)
    helps: str = ""
    is_in_steps: bool = False

    @property
    def gap_ns(self) -> float:
        """Time without work that it can save."""
        return sum(self.pools.values())

    @property
    def work_ns(self) -> float:
        """Work that it can save."""
        return sum(self.rows.values())


def has_counters(profile: Profile) -> bool:
    """Return whether hardware counters were recorded, so that verdicts are worth a column."""
    column = profile.columns.get(COUNTED_TIME)
    return column is not None and bool(column.valid.any())

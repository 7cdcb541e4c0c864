"""Outcomes of gates: rows, structural changes and notes, with hostile names among them."""

from __future__ import annotations

import math
from typing import Any

from proton_bench.gate.verdict.result import (
    GateResult,
    GateRow,
    Kind,
    Note,
    Outcome,
    Reason,
    StructuralChange,
    SuiteVerdict,
    Verdict,
)

# What tries to be HTML, rich's markup, a command of GitHub, a table's cell, a mention and a line.
HOSTILE = "<script>[/bold]::error::x|`@me\n::error::##[error]\x1b[31m\ud800]]>\ufffe%0A&"


def row(verdict: Verdict = Verdict.SAME, name: str = "kernel", **facts: Any) -> GateRow:
    """Return a row of 100 us that became 5 % slower and holds a tenth of the time."""
    known: dict[str, Any] = {
        "path": ("step", name),
        "occurrence": 0,
        "metric": "median",
        "threshold": "median:3%",
        "verdict": verdict,
        "reasons": (),
        "named": False,
        "share": 0.1,
        "base": 100_000.0,
        "new": 105_000.0,
        "limit": 0.03,
        "change": 0.05,
        "low": 0.04,
        "high": 0.06,
        "p_worse": 1e-4 if verdict is Verdict.REGRESSED else 0.5,
        "noise": 0.004,
        "pairs_needed": 0,
        "base_runs": 6,
        "new_runs": 6,
        "order_effect": 0.0,
        "same_binary": False,
        "downgraded": False,
    }
    return GateRow(**{**known, **facts})


def undecided(name: str = "noisy", **facts: Any) -> GateRow:
    """Return a row that may be worse and needs more pairs."""
    known = {
        "reasons": (Reason.TOO_NOISY,),
        "low": -0.02,
        "high": 0.12,
        "noise": 0.03,
        "pairs_needed": 14,
    }
    return row(Verdict.INCONCLUSIVE, name, **{**known, **facts})


def unknown(name: str = "unknown") -> GateRow:
    """Return a row of which nothing was measured."""
    nothing = dict.fromkeys(("base", "new", "change", "low", "high", "order_effect"), math.nan)
    return row(Verdict.INCONCLUSIVE, name, reasons=(Reason.NO_VALUES,), **nothing)


def structural(kind: Kind = Kind.LAUNCHES, **facts: Any) -> StructuralChange:
    """Return two launches more of a kernel."""
    known: dict[str, Any] = {
        "path": ("step", "more"),
        "kind": kind,
        "former_path": (),
        "base_calls": (4.0, 4.0),
        "new_calls": (6.0, 6.0),
        "change": 8000.0,
        "share": 0.02,
        "fails": False,
    }
    return StructuralChange(**{**known, **facts})


def outcome(
    verdict: SuiteVerdict, *rows: GateRow, explanation: str = "", problem: str = "", **facts: Any
) -> Outcome:
    """Return the outcome of six runs in turn."""
    known: dict[str, Any] = {
        "metric": "time (ns)",
        "unit": "ns",
        "paired": True,
        "base_runs": tuple(f"base/{each}.proton" for each in range(6)),
        "new_runs": tuple(f"new/{each}.proton" for each in range(6)),
    }
    return Outcome(GateResult(verdict, rows, **{**known, **facts}), explanation, problem)


def every_outcome() -> dict[str, Outcome]:
    """Return an outcome of each verdict by its name."""
    disturbed = Note(Reason.MACHINE, "clocks: nothing before, heat now. Run them again", voids=True)
    other = Note(Reason.NOT_COMPARABLE, "GPU name: H200 before, B200 now. They cannot be compared")
    return {
        "pass": outcome(SuiteVerdict.PASS, row(), row(Verdict.IMPROVED, "faster", change=-0.1)),
        "fail": outcome(
            SuiteVerdict.FAIL,
            row(Verdict.REGRESSED, "softmax"),
            undecided(),
            unknown(),
            row(name="calm"),
            explanation="+0.5 % (+5 us): 98 % of it is softmax under step",
            structure=(structural(), structural(Kind.NEW, path=("new",), base_calls=(0.0, 0.0))),
        ),
        "structure": outcome(
            SuiteVerdict.FAIL,
            row(),
            structure=(structural(fails=True),),
        ),
        "inconclusive": outcome(SuiteVerdict.INCONCLUSIVE, undecided(), notes=(disturbed,)),
        "void": outcome(SuiteVerdict.INCONCLUSIVE, row(), notes=(disturbed,)),
        "incomparable": outcome(SuiteVerdict.INCOMPARABLE, notes=(other,), metric=""),
        "no-baseline": outcome(
            SuiteVerdict.NO_BASELINE,
            notes=(Note(Reason.NO_BASE, "there is no base run"),),
            problem="there is no baseline 'main'",
            metric="",
        ),
        "error": Outcome.failed("x.proton is corrupt"),
    }


def hostile_outcome() -> Outcome:
    """Return an outcome in which every name tries to be something else."""
    return outcome(
        SuiteVerdict.FAIL,
        row(Verdict.REGRESSED, HOSTILE, threshold=f"{HOSTILE.replace('@', '')}@median:3%"),
        undecided(HOSTILE),
        row(name=HOSTILE),
        explanation="+1 %",
        structure=(
            structural(path=(HOSTILE,), fails=True),
            structural(Kind.MOVED, path=(HOSTILE,), former_path=(HOSTILE, "x")),
        ),
        notes=(Note(Reason.NOTICE, f"triton: {HOSTILE} before"),),
        base_runs=(HOSTILE,),
        new_runs=(HOSTILE,),
    )

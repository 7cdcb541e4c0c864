from __future__ import annotations

import math
from dataclasses import replace

import pytest

from proton_bench.gate.verdict.result import (
    EXIT_CODES,
    GateResult,
    GateRow,
    Kind,
    Note,
    Reason,
    StructuralChange,
    SuiteVerdict,
    Verdict,
    sum_up,
    undecided_share,
)

SAME = GateRow(
    path=("a",),
    occurrence=0,
    metric="median",
    threshold="median:3%",
    verdict=Verdict.SAME,
    reasons=(),
    named=False,
    share=0.9,
    base=1.0,
    new=1.0,
    limit=0.03,
    change=0.0,
    low=-0.01,
    high=0.01,
    p_worse=1.0,
    noise=0.005,
    pairs_needed=0,
    base_runs=6,
    new_runs=6,
    order_effect=math.nan,
    same_binary=False,
    downgraded=False,
)
WORSE = replace(SAME, path=("b",), verdict=Verdict.REGRESSED, share=0.01)
OPEN = replace(SAME, path=("c",), verdict=Verdict.INCONCLUSIVE, reasons=(), share=0.01)
GONE = StructuralChange(("d",), Kind.REMOVED, (), (1.0, 1.0), (0.0, 0.0), -5.0, 0.0, fails=False)
FORBIDDEN = replace(GONE, fails=True)


def summed(*rows: GateRow, structure: tuple[StructuralChange, ...] = ()) -> str:
    return sum_up(rows, structure, ()).value


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ((SAME,), "PASS"),
        ((), "PASS"),
        ((SAME, WORSE), "FAIL"),
        ((SAME, OPEN, WORSE), "FAIL"),
        ((SAME, OPEN), "PASS"),
        ((SAME, replace(OPEN, share=0.06)), "INCONCLUSIVE"),
        ((SAME, replace(OPEN, named=True)), "INCONCLUSIVE"),
        ((SAME, replace(OPEN, downgraded=True)), "INCONCLUSIVE"),
        ((SAME, replace(OPEN, share=0.5, reasons=(Reason.QUARANTINE,))), "PASS"),
        ((SAME, replace(OPEN, path=(), metric="total", share=1.0)), "INCONCLUSIVE"),
        ((SAME, replace(OPEN, metric="total", share=0.06)), "INCONCLUSIVE"),
        ((SAME, replace(OPEN, metric="total", share=0.04)), "PASS"),
        ((SAME, replace(OPEN, metric="tail", is_extra=True, downgraded=True)), "INCONCLUSIVE"),
        ((SAME, replace(OPEN, metric="tail", is_extra=True, share=0.5)), "PASS"),
        ((SAME, replace(OPEN, verdict=Verdict.IMPROVED, share=0.5)), "PASS"),
    ],
)
def test_rows_make_the_whole(rows: tuple[GateRow, ...], verdict: str) -> None:
    assert summed(*rows) == verdict


def test_structure_fails_only_where_it_is_forbidden() -> None:
    assert summed(SAME, structure=(GONE,)) == "PASS"
    assert summed(SAME, structure=(GONE, FORBIDDEN)) == "FAIL"


@pytest.mark.parametrize(
    ("reason", "voids", "verdict"),
    [
        (Reason.NOT_COMPARABLE, False, "INCOMPARABLE"),
        (Reason.NO_BASE, False, "NO-BASELINE"),
        (Reason.MACHINE, True, "INCONCLUSIVE"),
        (Reason.NOTHING_GATED, True, "INCONCLUSIVE"),
        (Reason.MACHINE, False, "PASS"),
        (Reason.NOTICE, False, "PASS"),
    ],
)
def test_notes_on_the_whole(reason: Reason, voids: bool, verdict: str) -> None:
    assert sum_up((SAME,), (), (Note(reason, "", voids),)) == verdict


def test_the_undecided_share_is_of_the_gated_time_and_counts_a_path_once() -> None:
    twice = replace(OPEN, metric="p95")
    others = [replace(OPEN, metric="total"), replace(OPEN, metric="tail", is_extra=True)]

    assert undecided_share((SAME, OPEN, twice, *others)) == pytest.approx(0.01 / 0.91)
    assert undecided_share((replace(OPEN, share=0.0),)) == 1.0
    assert undecided_share(()) == 0.0


def test_exit_codes_are_those_of_the_documents() -> None:
    assert {verdict.value: code for verdict, code in EXIT_CODES.items()} == {
        "PASS": 0,
        "FAIL": 1,
        "ERROR": 2,
        "INCONCLUSIVE": 3,
        "INCOMPARABLE": 4,
        "NO-BASELINE": 5,
    }
    passing = GateResult(SuiteVerdict.INCOMPARABLE, inconclusive_passes=True)
    assert passing.exit_code == 4

from __future__ import annotations

from fakes.outcomes import HOSTILE, row, undecided

from proton_bench.gate.judge.outcome import Outcome
from proton_bench.gate.judge.result import GateResult, GateRow
from proton_bench.gate.judge.structure import Kind, StructuralChange
from proton_bench.gate.judge.verdict import SuiteVerdict, Verdict
from proton_bench.report.html.verdicts import gate_verdicts
from proton_bench.support.text import visible

TESTS = {"a": "tests/test_x.py::test_a", "b": "tests/test_x.py::test_b"}


def outcome(*rows: GateRow, structure: tuple[StructuralChange, ...] = ()) -> Outcome:
    return Outcome(GateResult(SuiteVerdict.FAIL, rows=rows, structure=structure, unit="ns"))


def forbidden(path: tuple[str, ...]) -> StructuralChange:
    return StructuralChange(path, Kind.NEW, (), (0, 0), (1, 1), 5000.0, 0.1, fails=True)


def test_failing_tests_come_first() -> None:
    found = gate_verdicts(
        outcome(row(path=("a", "k")), row(Verdict.REGRESSED, path=("b", "k"))), TESTS
    )

    assert [(each.test, each.verdict) for each in found.tests] == [
        (TESTS["b"], SuiteVerdict.FAIL),
        (TESTS["a"], SuiteVerdict.PASS),
    ]
    assert [each.path for each in found.tests] == ["b", "a"]


def test_reason_of_a_failure_is_what_got_worse() -> None:
    rows = [row(Verdict.REGRESSED, path=("a", "slow")), row(path=("a", "same"))]

    (reason,) = gate_verdicts(outcome(*rows), {"a": "test_a"}).tests[0].reasons

    assert reason.startswith("slow: median 5.0 % slower")
    assert "allowed median:3%" in reason


def test_undecided_check_makes_a_test_inconclusive() -> None:
    rows = [row(path=("a", "same")), undecided(path=("a", "noisy"))]

    (found,) = gate_verdicts(outcome(*rows), {"a": "test_a"}).tests

    assert found.verdict is SuiteVerdict.INCONCLUSIVE
    assert [reason.partition(":")[0] for reason in found.reasons] == ["noisy"]


def test_test_without_checks_is_inconclusive() -> None:
    (found,) = gate_verdicts(outcome(), {"a": "test_a"}).tests

    assert found.verdict is SuiteVerdict.INCONCLUSIVE
    assert len(found.reasons) == 1


def test_forbidden_structure_fails_its_test() -> None:
    changes = (forbidden(("a", "new_kernel")),)

    (found,) = gate_verdicts(outcome(row(path=("a", "k")), structure=changes), {"a": "x"}).tests

    assert found.verdict is SuiteVerdict.FAIL
    assert found.reasons[0].startswith("NEW new_kernel")


def test_many_reasons_are_counted() -> None:
    rows = [row(Verdict.REGRESSED, path=("a", f"k{place}")) for place in range(9)]

    (found,) = gate_verdicts(outcome(*rows), {"a": "test_a"}).tests

    assert len(found.reasons) == 6
    assert found.reasons[-1] == "4 further checks"


def test_hostile_names_are_made_visible() -> None:
    (found,) = gate_verdicts(outcome(row(path=(HOSTILE, "k"))), {HOSTILE: HOSTILE}).tests

    assert found.test == found.path == visible(HOSTILE)

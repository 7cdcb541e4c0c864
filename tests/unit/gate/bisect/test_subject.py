from __future__ import annotations

import math

import pytest
from fakes.outcomes import row, structural, undecided
from fakes.timed import profile_of_times

from proton_bench.analysis.run import Run
from proton_bench.gate.bisect.subject import Subject, is_proven, subject_of
from proton_bench.gate.judge.result import GateResult, GateRow
from proton_bench.gate.judge.verdict import SuiteVerdict, Verdict
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.policy.threshold import parse_threshold

# The second path has too small a share to be a check by itself.
TIMES = {"step/a": [1e6] * 10, "step/b": [20.0] * 10}
B = Subject(("step", "b"), 0, "median", "step > b")


def run(name: str, **factors: float) -> Run:
    times = {path: [each * factors.get(path[-1], 1.0) for each in of] for path, of in TIMES.items()}
    return Run(profile_of_times(times), name)


def test_a_pair_says_how_much_a_path_changed_however_small_its_share_is() -> None:
    found = B.difference(run("0"), run("1", b=2.0), Policy(), base_first=True)

    assert found == pytest.approx(math.log(2.0), rel=0.05)


def test_the_order_of_a_pair_does_not_change_its_difference() -> None:
    one, other = (
        B.difference(run("0"), run("1", b=1.5), Policy(), base_first=each) for each in (True, False)
    )

    assert one == other


def test_a_path_that_is_not_there_has_no_difference() -> None:
    other = Run(profile_of_times({"step/a": [1e6] * 10}), "1")

    assert math.isnan(B.difference(run("0"), other, Policy(), base_first=True))


def test_a_forbidden_structural_change_is_there_or_not() -> None:
    policy = Policy(thresholds=(parse_threshold("calls:0"),))
    subject = Subject(("step", "b"), 0, "", "step > b")
    more = Run(profile_of_times({**TIMES, "step/b": [20.0] * 11}), "1")

    assert subject.difference(run("0"), run("2"), policy, base_first=True) == 0.0
    assert subject.difference(run("0"), more, policy, base_first=True) == 1.0


def test_of_several_regressions_the_clearest_is_searched() -> None:
    noisy = row(Verdict.REGRESSED, "noisy", change=0.3, low=0.05, high=0.6)
    clear = row(Verdict.REGRESSED, "clear", change=0.05, low=0.045, high=0.055)
    result = GateResult(SuiteVerdict.FAIL, rows=(noisy, clear), texts={"clear": "shown"})

    assert subject_of(result) == Subject(("step", "clear"), 0, "median", "step > shown")


def test_without_a_regression_a_forbidden_change_is_searched() -> None:
    changes = (structural(path=("step", "allowed")), structural(fails=True))
    result = GateResult(SuiteVerdict.FAIL, rows=(row(),), structure=changes)

    assert subject_of(result) == Subject(("step", "more"), 0, "", "step > more")


def test_without_either_there_is_nothing_to_search() -> None:
    assert subject_of(GateResult(SuiteVerdict.PASS, rows=(row(),))) is None


def test_paths_that_a_threshold_names_come_first() -> None:
    noisy = row(Verdict.REGRESSED, "noisy", change=0.3, low=0.05, high=0.6, named=True)
    clear = row(Verdict.REGRESSED, "clear", change=0.05, low=0.045, high=0.055)

    found = subject_of(GateResult(SuiteVerdict.FAIL, rows=(clear, noisy)))

    assert found == Subject(("step", "noisy"), 0, "median", "step > noisy")


def test_the_whole_run_may_be_searched() -> None:
    whole = row(Verdict.REGRESSED, path=(), metric="total")

    assert subject_of(GateResult(SuiteVerdict.FAIL, rows=(whole,))) == Subject(
        (), 0, "total", "whole run"
    )


SLOW = row(Verdict.REGRESSED, "slow")


@pytest.mark.parametrize(
    ("verdict", "rows", "is_enough"),
    [
        (SuiteVerdict.FAIL, [SLOW, undecided("other"), undecided("third")], True),
        (SuiteVerdict.FAIL, [SLOW, undecided("asked", named=True)], False),
        (SuiteVerdict.FAIL, [row(Verdict.REGRESSED, "x", named=True), undecided(named=True)], True),
        (SuiteVerdict.INCONCLUSIVE, [SLOW], False),  # a machine whose speed changed
        (SuiteVerdict.INCONCLUSIVE, [undecided()], False),
        (SuiteVerdict.PASS, [row()], False),
    ],
)
def test_a_proven_path_is_enough_unless_a_named_one_is_undecided(
    verdict: SuiteVerdict, rows: list[GateRow], is_enough: bool
) -> None:
    assert is_proven(GateResult(verdict, rows=tuple(rows))) is is_enough


def test_a_forbidden_structural_change_is_enough() -> None:
    found = GateResult(SuiteVerdict.FAIL, structure=(structural(fails=True),))

    assert is_proven(found)

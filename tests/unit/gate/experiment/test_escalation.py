from __future__ import annotations

import pytest
from fakes.gated import Kernel, session

from proton_bench.errors import UsageError
from proton_bench.gate.experiment.escalation import Plan, screen
from proton_bench.gate.judge.judgement import judge
from proton_bench.gate.judge.questions import Context
from proton_bench.gate.judge.verdict import SuiteVerdict, Verdict
from proton_bench.gate.policy.policy import Policy

QUIET = [Kernel(f"k{number}", between=0.002) for number in range(20)]
SLOWER = [*QUIET[:19], Kernel("k19", between=0.002, slower=0.06)]


def test_screening_flags_what_looks_slower() -> None:
    found = screen(*session(SLOWER, pairs=3), Policy())

    assert ("k19",) in found.flagged
    assert found.structure == ()


def test_nothing_flagged_passes_without_more_runs() -> None:
    base, new = session(QUIET, pairs=3)
    found = screen(base, new, Policy())

    result = judge(base, new, Policy(), context=Context(confirm=found.flagged))

    assert found.flagged == ()
    assert result.verdict is SuiteVerdict.PASS
    assert {row.verdict for row in result.rows} == {Verdict.SAME}


def test_fresh_pairs_judge_the_flagged_paths_alone() -> None:
    flagged = screen(*session(SLOWER, pairs=3), Policy()).flagged

    result = judge(*session(SLOWER, seed=9), Policy(), context=Context(confirm=flagged))

    assert [row.path for row in result.regressions] == [("k19",)]
    others = [row for row in result.rows if row.path != ("k19",)]
    assert {row.verdict for row in others} == {Verdict.SAME}
    assert all(row.p_worse != row.p_worse for row in others)  # NaN: no part of the family


def test_improvements_and_what_cannot_be_judged_are_flagged_too() -> None:
    faster = [*QUIET[:19], Kernel("k19", between=0.002, slower=-0.08)]

    assert ("k19",) in screen(*session(faster, pairs=3), Policy()).flagged
    assert len(screen(*session(QUIET, pairs=1), Policy()).flagged) > 20


def test_structure_is_seen_in_the_first_stage() -> None:
    more = [*QUIET[:19], Kernel("k19", new_launches=30)]

    assert [each.path for each in screen(*session(more, pairs=3), Policy()).structure] == [("k19",)]


def test_a_stricter_plan_flags_less_and_runs_are_needed() -> None:
    base, new = session(SLOWER, pairs=3)

    assert screen(base, new, Policy(), plan=Plan(flag_below=1e-30)).flagged == ()
    with pytest.raises(UsageError, match="a run on each side"):
        screen([], new, Policy())

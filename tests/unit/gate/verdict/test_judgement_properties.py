"""Properties of whole judgements, whatever is measured."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fakes.gated import Kernel, process, profile_of_times, session
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.analysis.run import Run
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import GateResult, Verdict

OPPOSITE = {Verdict.REGRESSED: Verdict.IMPROVED, Verdict.IMPROVED: Verdict.REGRESSED}

KERNELS = st.lists(
    st.builds(
        Kernel,
        path=st.sampled_from([f"f/k{number}" for number in range(9)]),
        time_ns=st.floats(20_000.0, 1e6),
        between=st.floats(0.001, 0.05),
        slower=st.sampled_from([0.0, 0.0, 0.03, 0.1, -0.1]),
        launches=st.integers(1, 6),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda kernel: kernel.path,
)
POLICY = Policy(share=1e-9)


def by_path(result: GateResult) -> dict[tuple[str, ...], Verdict]:
    decided = {row.path: row.verdict for row in result.rows if row.metric != "tail"}
    # A path that may have got faster is not slower, and the reverse is undecided.
    return {path: verdict for path, verdict in decided.items() if verdict in OPPOSITE}


@settings(max_examples=how_many(25, 8), deadline=None)
@given(KERNELS, st.integers(0, 1000), st.booleans())
def test_exchanging_the_sides_exchanges_regressions_and_improvements(
    kernels: list[Kernel], seed: int, in_turn: bool
) -> None:
    base, new = session(kernels, seed=seed)
    if not in_turn:
        base = base[:5]

    there, back = gate_result(base, new, POLICY), gate_result(new, base, POLICY)

    exchanged = {path: OPPOSITE.get(verdict, verdict) for path, verdict in by_path(back).items()}
    assert by_path(there) == exchanged
    assert there.paired == back.paired == in_turn


@settings(max_examples=how_many(20, 8), deadline=None)
@given(KERNELS, st.integers(0, 1000))
def test_long_times_in_another_unit_give_the_same_verdicts(
    kernels: list[Kernel], seed: int
) -> None:
    # All are longer than the timer's tick and than what counts as short, before and after.
    slow = [replace(each, time_ns=1000.0 * each.time_ns) for each in kernels]
    policy = Policy(share=1e-9).with_thresholds(["median:3%"])

    there = gate_result(*session(kernels, seed=seed), policy)
    other = gate_result(*session(slow, seed=seed), policy)

    assert by_path(there) == by_path(other)
    changes = {(row.path, row.metric): row.change for row in other.rows}
    for row in there.rows:
        assert row.change == pytest.approx(changes[row.path, row.metric], abs=1e-6)


@settings(max_examples=how_many(20, 8), deadline=None)
@given(KERNELS, st.integers(0, 1000), st.floats(0.0, 0.3))
def test_a_further_slowdown_never_clears_a_path(
    kernels: list[Kernel], seed: int, more: float
) -> None:
    slower = [replace(kernels[0], slower=kernels[0].slower + more), *kernels[1:]]
    path = tuple(kernels[0].path.split("/"))
    policy = Policy(share=1e-9).with_thresholds(["median:3%"])

    before = by_path(gate_result(*session(kernels, seed=seed), policy)).get(path)
    after = by_path(gate_result(*session(slower, seed=seed), policy)).get(path)

    if before is Verdict.REGRESSED:
        assert after is Verdict.REGRESSED


@settings(max_examples=how_many(15, 8), deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([0.0, -1.0, 1.0, 7.0, 1e300, math.pi]), min_size=1),
        min_size=2,
        max_size=6,
    ),
    st.integers(1, 5),
)
def test_whatever_was_measured_is_judged(values: list[list[float]], split: int) -> None:
    runs = [Run(profile_of_times({"k": each}), "x") for each in values]
    at = min(split, len(runs) - 1)

    result = gate_result(runs[:at], runs[at:], POLICY.with_thresholds(["k@median:3%"]))

    assert result.exit_code in {0, 1, 3}
    assert [row.threshold for row in result.rows if row.named] == ["k@median:3%"]


def test_the_order_of_the_runs_does_not_matter() -> None:
    kernels = [Kernel("a", slower=0.1), Kernel("b")]
    base, new = session(kernels)

    shuffled = gate_result(base[::-1], new[::-1], POLICY)

    assert shuffled.rows == gate_result(base, new, POLICY).rows


def test_a_run_against_itself_never_fails() -> None:
    generator = np.random.default_rng(1)
    runs = [process([Kernel("a")], generator, new=False, at=at) for at in range(6)]

    assert not gate_result(runs, runs, POLICY).regressions

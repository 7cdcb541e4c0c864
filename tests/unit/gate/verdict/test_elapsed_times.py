"""Elapsed times of scopes beside kernels: what explains their changes, and what leaves none."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.gated import reasons_of
from fakes.programs import Program, recorded

from proton_bench.analysis.run import Run
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import GateResult, Reason, SuiteVerdict, Verdict

RUNS = 6
KERNELS = {f"s{n % 5}/k{n}": [1e5] * 20 for n in range(20)}
CANARIES = {f"<canary>/fma{n}": [1e6] * 20 for n in range(3)}


def sides(before: Program, after: Program, *, times: str) -> tuple[list[Run], list[Run]]:
    """Return the runs of both sides: ``apart``, ``in turn``, or always the ``base first``."""
    noise = np.random.default_rng(1)
    starts = {
        "apart": (range(RUNS), range(1000, 1000 + RUNS)),
        "base first": (range(0, 2 * RUNS, 2), range(1, 2 * RUNS, 2)),
        "in turn": (
            [4 * (n // 2) + 3 * (n % 2) for n in range(RUNS)],
            [4 * (n // 2) + 1 + n % 2 for n in range(RUNS)],
        ),
    }[times]
    base, new = (
        [recorded(program, noise, at) for at in each]
        for program, each in zip((before, after), starts, strict=True)
    )
    return base, new


def elapsed(scopes: int, slower: float = 1.0) -> dict[str, list[float]]:
    """Return the elapsed times of the entries of scopes."""
    return {f"s{n}": [1e7 * slower] * 10 for n in range(scopes)}


def walls_of(result: GateResult) -> dict[str, Verdict]:
    """Return the verdicts on elapsed times by path; the whole run has the path ""."""
    return {"/".join(row.path): row.verdict for row in result.rows if row.metric == "wall"}


@pytest.mark.parametrize("times", ["apart", "base first"])
@pytest.mark.parametrize("scopes", [5, 10])
@pytest.mark.parametrize("canaries", [False, True])
def test_a_slower_host_beside_kernels_as_fast_as_before_is_undecided(
    times: str, scopes: int, canaries: bool
) -> None:
    kernels = {**KERNELS, **(CANARIES if canaries else {})}
    before = Program(kernels, walls=elapsed(scopes), between=0.001, within=0.001)
    after = Program(kernels, walls=elapsed(scopes, 1.12), between=0.001, within=0.001)

    result = gate_result(*sides(before, after, times=times), Policy())

    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    assert result.canaries.is_steady == canaries
    assert set(walls_of(result).values()) == {Verdict.INCONCLUSIVE}
    assert {Reason.MACHINE} <= {
        reason for row in result.rows if row.metric == "wall" for reason in row.reasons
    }


def test_a_scope_that_got_slower_than_the_host_did_is_believed() -> None:
    before = Program(KERNELS, walls=elapsed(10))
    after = Program(KERNELS, walls={**elapsed(10, 1.05), "s3": [1.3e7] * 10})

    result = gate_result(*sides(before, after, times="apart"), Policy())

    assert {row.path for row in result.regressions} == {("s3",)}


def test_slower_kernels_do_not_excuse_elapsed_times() -> None:
    before = Program(KERNELS, walls=elapsed(10))
    slower = {path: [1.3e5] * 20 for path in KERNELS}
    after = Program(slower, walls={**elapsed(10), "s3": [1.3e7] * 10})

    result = gate_result(*sides(before, after, times="apart"), Policy())

    assert {row.path for row in result.regressions} == {("s3",)}


def test_a_slower_host_between_pairs_recorded_in_turn_is_the_programs() -> None:
    before = Program(KERNELS, walls=elapsed(10))
    after = Program(KERNELS, walls=elapsed(10, 1.12))

    result = gate_result(*sides(before, after, times="in turn"), Policy())

    assert set(walls_of(result).values()) == {Verdict.REGRESSED}


BOTH = Program(KERNELS, walls=elapsed(5))
WITHOUT = Program(KERNELS)


def decided(before: Program, after: Program, *thresholds: str) -> GateResult:
    policy = Policy().with_thresholds(thresholds)
    return gate_result(*sides(before, after, times="in turn"), policy)


@pytest.mark.parametrize("thresholds", [(), ("wall:5%",), ("s1@wall:5%",)])
def test_elapsed_times_that_no_new_run_has_do_not_pass(thresholds: tuple[str, ...]) -> None:
    result = decided(BOTH, WITHOUT, *thresholds)

    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    expected = {Reason.PATHS_DIFFER, *([Reason.NO_VALUES] if thresholds else [])}
    assert reasons_of(result) == expected


@pytest.mark.parametrize(("threshold", "passes"), [("s1@wall:5%", False), ("s2@wall:5%", True)])
def test_a_named_scope_may_not_lose_its_elapsed_time(threshold: str, passes: bool) -> None:
    before = Program(KERNELS, walls={**elapsed(5), "s1": [1e4]})
    walls = {path: times for path, times in before.walls.items() if path != "s1"}

    result = decided(before, Program(KERNELS, walls=walls), threshold)

    assert (result.verdict is SuiteVerdict.PASS) == passes
    assert reasons_of(result) == (set() if passes else {Reason.NO_VALUES})


def test_a_base_without_elapsed_times_says_nothing_of_them() -> None:
    result = decided(WITHOUT, BOTH)

    assert (result.verdict, result.notes) == (SuiteVerdict.PASS, ())


@pytest.mark.parametrize(
    ("threshold", "verdict"),
    [("wall:1000%", SuiteVerdict.PASS), ("wall:20%", SuiteVerdict.FAIL)],
)
def test_new_elapsed_times_count_in_that_of_the_run(threshold: str, verdict: SuiteVerdict) -> None:
    before = Program(KERNELS, walls={"s0": [1e7] * 10})

    assert decided(before, BOTH, threshold).verdict is verdict


@pytest.mark.parametrize("threshold", ["s1@wall:5%", "s1@total:5%", "s1@5%", "s*@wall:5%"])
def test_a_threshold_may_name_a_scope_without_launches(threshold: str) -> None:
    result = decided(BOTH, BOTH, threshold)

    assert ("s1",) in {row.path for row in result.rows if row.named}
    assert (result.verdict, result.notes) == (SuiteVerdict.PASS, ())


@pytest.mark.parametrize("threshold", ["s1@median:5%", "s1@p95:5%", "s1@calls:0", "s9@wall:5%"])
def test_a_threshold_without_anything_to_hold_does_not_pass(threshold: str) -> None:
    result = decided(BOTH, BOTH, threshold)

    assert reasons_of(result) == {Reason.NOTHING_GATED}
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def step(
    *around: str,
    outer: str = "step",
    fwd: float = 2e8,
    amp: float | None = None,
    load: float = 8e8,
    kernels: tuple[str, ...] = ("k0", "k1"),
) -> Program:
    """Return a step that loads data and computes, in scopes ``around`` the computation.

    Args:
        around: Names of scopes between the outer one and ``fwd``.
        outer: Name of the outer scope.
        fwd: Elapsed time of ``fwd``, in ns.
        amp: That of the scope around it, None for none.
        load: That of the other scope.
        kernels: Names of the kernels of ``fwd``.
    """
    path = "/".join((outer, *around))
    walls = {outer: [load + fwd] * 10, f"{outer}/load": [load] * 10, f"{path}/fwd": [fwd] * 10}
    if amp is not None:
        walls[path] = [amp] * 10
    launched = {f"{path}/fwd/{name}": [1e5] * 20 for name in kernels}
    return Program({**launched, f"{outer}/load/k2": [1e5] * 20}, walls=walls)


MOVES = {
    "same place": (step(), step(fwd=2.8e8), "step/fwd"),
    "a scope around it": (step(), step("amp", fwd=2.8e8, amp=2.81e8), "step/amp/fwd"),
    "one without a time": (step(), step("amp", fwd=2.8e8), "step/amp/fwd"),
    "a scope removed": (step("amp", amp=2.01e8), step(fwd=2.8e8), "step/fwd"),
    "outer one renamed": (step(), step(outer="train_step", fwd=2.8e8), "train_step/fwd"),
}


@pytest.mark.parametrize("case", MOVES)
def test_a_scope_that_moved_with_its_kernels_keeps_its_elapsed_time(case: str) -> None:
    before, after, path = MOVES[case]

    result = decided(before, after)

    assert ("/".join(result.regressions[0].path), result.regressions[0].metric) == (path, "wall")
    assert result.regressions[0].change == pytest.approx(0.4, abs=0.02)
    assert {"/".join(row.path) for row in result.regressions} == {path}


@pytest.mark.parametrize("case", MOVES)
def test_a_scope_that_moved_as_fast_as_before_passes(case: str) -> None:
    before, after, path = MOVES[case]
    walls = {key: [2e8] * 10 if key == path else times for key, times in after.walls.items()}
    outer = path.split("/")[0]
    same = Program(after.kernels, walls={**walls, outer: [1e9] * 10})

    assert decided(before, same).verdict is SuiteVerdict.PASS


def test_a_scope_whose_kernels_went_to_two_scopes_is_not_compared() -> None:
    before = step()
    kernels = {"step/a/k0": [1e5] * 20, "step/b/k1": [1e5] * 20, "step/load/k2": [1e5] * 20}
    walls = {"step": [1e9] * 10, "step/load": [8e8] * 10}
    after = Program(kernels, walls={**walls, "step/a": [1e8] * 10, "step/b": [1e8] * 10})

    result = decided(before, after)

    assert result.verdict is SuiteVerdict.PASS  # by the elapsed time of the step
    assert not {path for path in walls_of(result) if path in {"step/a", "step/b", "step/fwd"}}


def test_a_scope_in_another_is_checked_where_they_are_not_as_long_on_each_side() -> None:
    parts = {"step": [1e9] * 10, "step/fwd": [8.5e8] * 10, "step/wait": [1.4e8] * 10}
    before = Program({"step/fwd/k0": [1e5] * 20}, walls=parts)
    slower = {**parts, "step/fwd": [9.8e8] * 10, "step/wait": [1e7] * 10}
    after = Program(before.kernels, walls=slower)

    assert {row.path for row in decided(before, after).regressions} == {("step", "fwd")}
    assert walls_of(decided(after, before))["step/fwd"] is Verdict.IMPROVED
    assert "step/fwd" not in walls_of(decided(after, after))


@pytest.mark.parametrize("threshold", ["small@total:2%", "small@2%"])
def test_a_named_scope_that_is_gone_does_not_pass(threshold: str) -> None:
    before = Program({**KERNELS, "small/once": [1e5]})

    result = decided(before, Program(KERNELS), threshold)

    assert result.verdict is SuiteVerdict.INCONCLUSIVE

"""Certain slow-downs of any kind do not pass, and unchanged runs do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes.programs import Program, recorded

from proton_bench.analysis.run import Run
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import GateResult, Outcome, SuiteVerdict
from proton_bench.model.frame import FrameKind

US = 1_000.0
PAIRS = 6


def decided(before: Program, *after: Program, policy: Policy | None = None, seed: int = 1) -> Any:
    """Return the gate of six pairs that were recorded in turn; new runs take turns in ``after``."""
    noise = np.random.default_rng(seed)
    sides: tuple[list[Run], list[Run]] = ([], [])
    for at in range(2 * PAIRS):
        is_new = at % 4 in {1, 2}
        program = after[len(sides[1]) % len(after)] if is_new else before
        sides[is_new].append(recorded(program, noise, at))
    return gate_result(*sides, policy or Policy())


def regressed(result: GateResult) -> set[tuple[str, str]]:
    """Return path and metric of what regressed; the whole run has the path ""."""
    return {("/".join(row.path), row.metric) for row in result.regressions}


# A step of a model: eight kernels of 100 us in two scopes, 40 launches each: 32 ms.
MODEL = Program({f"step/{part}/k{n}": [100 * US] * 40 for part in ("fwd", "bwd") for n in range(4)})
SMALL = MODEL.but({"step/fwd/small": [8 * US] * 40})  # 1 % of the time
MANY = MODEL.but({f"step/fwd/tiny{n}": [2.5 * US] * 20 for n in range(300)})  # 0.1 % each
HOST = replace(MODEL, walls={"step": [1e6] * 40, "step/fwd": [4e5] * 40, "step/bwd": [5e5] * 40})
SCOPES = Program({}, walls=HOST.walls)
LAYERS = Program(
    {f"model/block{n}/aten::mm/gemm": [50 * US] * 40 for n in range(10)},
    kinds={
        **{f"model/block{n}": FrameKind.LAYER for n in range(10)},
        **{f"model/block{n}/aten::mm": FrameKind.OP for n in range(10)},
    },
)
K0, RUN = "step/fwd/k0", ""

SLOW_DOWNS: dict[str, tuple[Program, Program, set[tuple[str, str]]]] = {
    "a new kernel, +23.8 % of the run": (
        MODEL,
        MODEL.but({"step/fwd/new": [190 * US] * 40}),
        {(RUN, "total"), ("step/fwd", "total")},
    ),
    "a new kernel in a small scope": (
        MODEL.but({"step/opt/adam": [50 * US] * 20}),
        MODEL.but({"step/opt/adam": [50 * US] * 20, "step/opt/new": [20 * US] * 20}),
        {("step/opt", "total")},
    ),
    "nearly twice as many launches, +9.4 %": (
        MODEL,
        MODEL.but({K0: [100 * US] * 70}),
        {(RUN, "total"), ("step/fwd", "total")},
    ),
    "a slower host and the same kernels": (
        HOST,
        replace(HOST, walls={**HOST.walls, "step": [1.2e6] * 40, "step/fwd": [6e5] * 40}),
        {("step", "wall"), ("step/fwd", "wall")},
    ),
    "a new outermost scope of the host": (
        HOST,
        replace(HOST, walls={**HOST.walls, "data": [1.2e5] * 40}),
        {(RUN, "wall")},
    ),
    "scopes alone, one of them slower": (
        SCOPES,
        replace(SCOPES, walls={**SCOPES.walls, "step": [1.1e6] * 40, "step/fwd": [5e5] * 40}),
        {(RUN, "total"), ("step/fwd", "median")},
    ),
    "scopes alone, entered more often": (
        SCOPES,
        replace(SCOPES, walls={**SCOPES.walls, "step": [1e6] * 48, "step/fwd": [4e5] * 48}),
        {(RUN, "total")},
    ),
    "many kernels, each below the share, 8 % slower": (
        MANY,
        MANY.but({f"step/fwd/tiny{n}": [2.7 * US] * 20 for n in range(300)}),
        set(),
    ),
    "many kernels of one scope, each below the share, 20 % slower": (
        MODEL.but({f"step/fwd/small/tiny{n}": [2 * US] * 20 for n in range(100)}),
        MODEL.but({f"step/fwd/small/tiny{n}": [2.4 * US] * 20 for n in range(100)}),
        {("step/fwd/small", "total")},
    ),
    "another name of a scope, and slower": (
        MODEL,
        Program(
            {
                **{f"step/forward/k{n}": [115 * US] * 40 for n in range(4)},
                **{f"step/bwd/k{n}": [100 * US] * 40 for n in range(4)},
            }
        ),
        {(RUN, "total")},
    ),
    "a kernel on another stream, and slower": (
        MODEL,
        MODEL.but({K0: None, "step/stream 7/k0": [140 * US] * 40}),
        {(RUN, "total")},
    ),
    "a kernel replaced by a slower copy": (
        MODEL,
        MODEL.but({K0: None, "step/fwd/memcpy": [150 * US] * 40}).but(
            {}, kinds={"step/fwd/memcpy": FrameKind.COPY}
        ),
        {(RUN, "total"), ("step/fwd", "total")},
    ),
    "a kernel split in two, together slower": (
        MODEL,
        MODEL.but({K0: None, "step/fwd/a": [75 * US] * 40, "step/fwd/b": [65 * US] * 40}),
        {(RUN, "total"), ("step/fwd", "total")},
    ),
    "a faster kernel that is launched ten times as often": (
        MODEL,
        MODEL.but({K0: [20 * US] * 400}),
        {(RUN, "total"), ("step/fwd", "total")},
    ),
    "new work beside all known scopes": (
        MODEL,
        MODEL.but({"check/isnan": [50 * US] * 40}),
        {(RUN, "total")},
    ),
    "more launches in one layer": (
        LAYERS,
        LAYERS.but({"model/block3/aten::mm/gemm": [50 * US] * 48}),
        {("model/block3", "total")},
    ),
}


@pytest.mark.parametrize("case", SLOW_DOWNS)
def test_certain_slow_downs_fail(case: str) -> None:
    before, after, expected = SLOW_DOWNS[case]

    result = decided(before, after)

    assert result.verdict is SuiteVerdict.FAIL
    assert regressed(result) >= expected


# What only some launches of a path take longer is found where a threshold asks for it.
SLOW_LAUNCHES: dict[str, tuple[Program, Program, set[tuple[str, str]]]] = {
    "one of 20 launches 20 times slower": (
        MODEL,
        MODEL.but({K0: ([100 * US] * 19 + [2000 * US]) * 2}),
        {("step/fwd", "total"), (K0, "tail")},
    ),
    "one of 20 launches 20 times slower in 1 % of the time": (
        SMALL,
        SMALL.but({"step/fwd/small": ([8 * US] * 19 + [160 * US]) * 2}),
        {("step/fwd/small", "tail")},
    ),
    "45 % of the launches twice as slow": (
        MODEL,
        MODEL.but({K0: [100 * US] * 22 + [200 * US] * 18}),
        {(K0, "tail")},
    ),
    "one of 40 launches 30 times slower": (
        MODEL,
        MODEL.but({K0: [100 * US] * 39 + [3000 * US]}),
        {(K0, "tail")},
    ),
    "slow launches that become more, with the same median and slowest tenth": (
        MODEL.but({"step/fwd/small": [20 * US] * 32 + [60 * US] * 8}),
        MODEL.but({"step/fwd/small": [20 * US] * 24 + [60 * US] * 16}),
        {("step/fwd/small", "mean")},
    ),
    "a middle size of launches twice as slow": (
        MODEL.but({"step/fwd/k1": [60 * US] * 24 + [90 * US] * 8 + [250 * US] * 8}),
        MODEL.but({"step/fwd/k1": [60 * US] * 24 + [180 * US] * 8 + [250 * US] * 8}),
        {("step/fwd/k1", "mean")},
    ),
    "one of five launches twice as slow": (
        MODEL.but({K0: [100 * US] * 5}),
        MODEL.but({K0: [100 * US] * 4 + [200 * US]}),
        {(K0, "tail")},
    ),
    "scopes alone, one of three entries slower": (
        replace(SCOPES, walls={"a": [1e6] * 3, "b": [1e6] * 20}),
        replace(SCOPES, walls={"a": [1e6, 1e6, 1.4e6], "b": [1e6] * 20}),
        {("a", "tail")},
    ),
}


@pytest.mark.parametrize("case", SLOW_LAUNCHES)
def test_slow_launches_that_a_threshold_asks_for_fail(case: str) -> None:
    before, after, expected = SLOW_LAUNCHES[case]

    result = decided(before, after, policy=Policy().with_thresholds(["tail:9%", "mean:9%"]))

    assert result.verdict is SuiteVerdict.FAIL
    assert regressed(result) >= expected


@pytest.mark.parametrize("times", [([100 * US] * 19 + [2000 * US]) * 2, [100 * US, 200 * US] * 20])
def test_slow_launches_fail_by_their_total_without_being_asked_for(times: list[float]) -> None:
    assert ("step/fwd", "total") in regressed(decided(MODEL, MODEL.but({K0: times})))


DOUBTS: dict[str, tuple[Program, tuple[Program, ...]]] = {
    "a new kernel in every second run": (MODEL, (MODEL, MODEL.but({"step/new": [200 * US] * 40}))),
    "slow launches in every third run": (MODEL, (MODEL, MODEL, MODEL.but({K0: [130 * US] * 40}))),
    "a scope of the host, slower in the runs that have it": (
        replace(MODEL, walls={"step": [1e6] * 40, "data": [5e5] * 40}),
        (
            replace(MODEL, walls={"step": [1e6] * 40, "data": [7e5] * 40}),
            replace(MODEL, walls={"step": [1e6] * 40}),
        ),
    ),
    "work that ended early": (MODEL, (Program({K0: [100 * US] * 40}),)),
    "+10 % on a noisy machine": (
        replace(MODEL, between=0.1),
        (replace(MODEL.but({K0: [110 * US] * 40}), between=0.1),),
    ),
}


@pytest.mark.parametrize("case", DOUBTS)
def test_uncertain_slow_downs_do_not_pass(case: str) -> None:
    before, after = DOUBTS[case]

    result = decided(before, *after)

    assert result.verdict in {SuiteVerdict.INCONCLUSIVE, SuiteVerdict.FAIL}


RARE = MODEL.but({K0: [100 * US] * 39 + [2000 * US]})
UNCHANGED = {
    "model": MODEL,
    "host": HOST,
    "scopes": SCOPES,
    "layers": LAYERS,
    "many": MANY,
    "rare slow launches on both sides": RARE,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged_programs_pass(name: str, seed: int) -> None:
    program = UNCHANGED[name]

    result = decided(program, program, seed=seed)

    assert (result.verdict, result.exit_code) == (SuiteVerdict.PASS, 0)


def loop(*numbers: int, slower: float = 1.0) -> Program:
    """Return a loop with two kernels in each of these steps."""
    steps = [f"train/{step}" for step in map("step {}".format, numbers)]
    times = {"gemm": 90 * US * slower, "relu": 40 * US}
    return Program({f"{step}/{k}": [took] * 30 for step in steps for k, took in times.items()})


@pytest.mark.parametrize("slower", [1.0, 1.1])
def test_steps_with_other_numbers_are_the_same_steps(slower: float) -> None:
    result = decided(loop(3, 4, 5), loop(70, 71, 72, slower=slower))

    assert not result.structure
    found = {path for path, _ in regressed(result) if path.endswith("gemm")}
    assert len(found) == (3 if slower > 1.0 else 0)
    assert result.verdict is (SuiteVerdict.FAIL if slower > 1.0 else SuiteVerdict.PASS)


def test_more_steps_make_the_run_slower_and_no_step() -> None:
    result = decided(loop(2, 3, 4, 5), loop(10, 11, 12, 13, 14))

    assert regressed(result) == {(RUN, "total")}
    assert {each.path[-2] for each in result.structure} == {"step 14"}


@pytest.mark.parametrize(("numbers", "verdict"), [((1, 3), "PASS"), ((1, 2, 3, 5), "FAIL")])
def test_kernels_that_a_compiler_counted_anew_are_judged_by_the_total_around(
    numbers: tuple[int, ...], verdict: str
) -> None:
    name, times = "graph/triton_poi_fused_mul_{}", [30, 60, 90, 120]
    left = times[1:3] if verdict == "PASS" else times
    before = MODEL.but({name.format(2 * n): [times[n] * US] * 40 for n in range(3)})
    after = {name.format(n): [took * US] * 40 for n, took in zip(numbers, left, strict=True)}

    result = decided(before, MODEL.but(after))

    assert result.verdict == verdict
    assert {metric for _, metric in regressed(result)} <= {"total"}


def test_an_allowed_cost_of_new_work_passes() -> None:
    after = MODEL.but({"step/fwd/new": [8 * US] * 40})  # 1 % of the run, 2 % of the scope

    assert decided(MODEL, after).verdict is SuiteVerdict.PASS


def test_equal_totals_are_checked_once_as_the_outermost_scope() -> None:
    kernels = {
        f"a/b/{part}/k{n}": [50 * US] * 20 for part in ("x/aten::mm", "y/z") for n in range(2)
    }
    op = {"a/b/x/aten::mm": FrameKind.OP, "a/b/y": FrameKind.OP}

    program = Program(kernels, kinds=op)
    result = decided(program, program)

    totals = {"/".join(row.path) for row in result.rows if row.is_total}
    # `a` and `a/b` are the run, `aten::mm` is `x`; the operator `y` has one scope in it.
    assert totals == {"", "a/b/x", "a/b/y/z"}


def scopes(entries: int, slower: float = 1.0) -> Program:
    """Return a program of two outermost scopes with two in each, one of them slower."""
    times = {"train/fwd": 2.0 * slower, "train/bwd": 3.0, "eval/fwd": 2.0, "eval/data": 2.0}
    outer = {"train": times["train/fwd"] + 3.0, "eval": 4.0}
    walls = {path: [ms * 1e6] * entries for path, ms in {**outer, **times}.items()}
    return Program({}, walls=walls)


def checked(result: GateResult) -> dict[str, set[str]]:
    """Return the metrics that are checked of each path; the whole run has the path ""."""
    found: dict[str, set[str]] = {}
    for row in result.rows:
        found.setdefault("/".join(row.path), set()).add(row.metric)
    return found


@pytest.mark.parametrize(
    ("entries", "thresholds", "metrics"),
    [
        (1, [], {"total"}),
        (40, [], {"median", "total"}),
        (40, ["wall:5%"], {"median", "wall"}),
        (1, ["train@wall:5%", "train@total:1%"], {"median", "total", "wall"}),
    ],
)
def test_the_elapsed_time_of_a_scope_is_checked_once(
    entries: int, thresholds: list[str], metrics: set[str]
) -> None:
    program = scopes(entries)

    found = checked(decided(program, program, policy=Policy().with_thresholds(thresholds)))

    assert found["train"] == metrics
    assert found[""] == {"total"}
    assert "median" in found["train/fwd"]


@pytest.mark.parametrize(("other_ms", "expected"), [(0.01, False), (0.5, True)])
def test_the_elapsed_time_of_the_run_is_checked_beside_several_scopes(
    other_ms: float, expected: bool
) -> None:
    program = replace(HOST, walls={**HOST.walls, "data": [other_ms * 1e6] * 40})

    found = checked(decided(program, program))

    assert ("wall" in found[""]) is expected


def test_a_scope_that_got_slower_is_shown_once() -> None:
    result = decided(scopes(40), scopes(40, slower=1.2))

    shown = Outcome(result).telling_rows
    assert regressed(result) >= {("train", "median"), ("train", "total")}
    assert ["/".join(row.path) for row in shown if row.metric != "tail"] == [
        "train/fwd",
        "train",
        "",
    ]
    assert len(shown) + len(Outcome(result).calm_rows) == len(result.rows)


Causes = tuple[set[str], set[str]]


def causes(result: GateResult) -> dict[tuple[str, str], Causes]:
    """Return what grew and what is slower below each regressed path, by path and metric."""
    seen = Outcome(result)
    return {
        ("/".join(row.path), row.metric): (
            {"/".join(each.path) for each in seen.grown_below(row)},
            {"/".join(path) for path in seen.slower_below(row)},
        )
        for row in result.regressions
    }


def test_launches_explain_totals_and_no_launch() -> None:
    policy = Policy().with_thresholds([f"{K0}@total:3%"])

    found = causes(decided(MODEL, MODEL.but({K0: [120 * US] * 60}), policy=policy))

    assert found[K0, "median"] == (set(), set())
    assert found[K0, "total"] == ({K0}, set())
    assert found["", "total"] == ({K0}, {K0})


def test_a_slower_kernel_explains_no_elapsed_time_of_which_it_has_little() -> None:
    before = replace(MODEL, walls={"step": [50e6] * 4})
    little = before.but({K0: [110 * US] * 40}, walls={"step": [60e6] * 4})
    much = before.but({K0: [1600 * US] * 40}, walls={"step": [65e6] * 4})

    assert causes(decided(before, little))["step", "wall"] == (set(), set())
    assert causes(decided(before, much))["step", "wall"] == (set(), {K0})


def test_a_slower_scope_explains_the_elapsed_time_around_it() -> None:
    found = causes(decided(scopes(40), scopes(40, slower=1.2)))

    assert found["train", "median"] == found["train", "total"] == (set(), {"train/fwd"})


@pytest.mark.parametrize("launches", [1, 2])
def test_slowest_launches_that_a_threshold_names_are_checked_however_few(launches: int) -> None:
    before = MODEL.but({K0: [100 * US] * launches})
    after = MODEL.but({K0: [110 * US] * launches})

    result = decided(before, after, policy=Policy().with_thresholds(["k0@tail:5%"]))

    assert (K0, "tail") in regressed(result)
    assert (K0, "tail") not in regressed(decided(before, after))


def test_what_a_quarantined_path_takes_counts_nowhere() -> None:
    after = MODEL.but({K0: [150 * US] * 40})

    assert decided(MODEL, after, policy=Policy(quarantine=("k0",))).verdict is SuiteVerdict.PASS
    assert decided(MODEL, after).verdict is SuiteVerdict.FAIL


def test_a_large_quarantined_path_leaves_the_others_as_important_as_without_it() -> None:
    before = MODEL.but({"big": [20e6] * 40, "step/fwd/small": [60 * US] * 2})
    after = before.but({"step/fwd/small": [90 * US] * 2})

    result = decided(before, after, policy=Policy(quarantine=("big",)))

    assert regressed(result) == {("step/fwd/small", "median")}

"""The values of benchmarks that a gate compares, and the thresholds of markers."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from fakes.benchmarks import profile_with, record_of, runs_of

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.machine import CANARY_SCOPE
from proton_bench.gate.policy import Policy
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.verdict.benchmarks import OUTSIDE, ROUND, compared_runs
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import (
    GateResult,
    GateRow,
    Kind,
    Reason,
    SuiteVerdict,
    Verdict,
)
from proton_bench.model.benchmark_columns import CHOSEN_TESTS
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.rounds.cuda import FLUSH
from proton_bench.rounds.in_profile import profile_of

GPU = Device("CUDA", 0, "90", 132)
TEST = ("session", "test_x.py", "test_a")
ESCAPED = r"test_x.py::test_a"
A, B, C = (f"test_x.py::test_{name}" for name in "abc")


def value(profile: Profile, path: tuple[str, ...], metric: str) -> object:
    (row,) = [row for row in range(len(profile)) if profile.path(row) == path]
    column = profile.columns.get(metric)
    return None if column is None or not column.valid[row] else column.values[row]


def gated(profile: Profile) -> Profile:
    """Return the part of a run that a gate compares."""
    run = Run(profile, "x.proton")
    return compared_runs(Arrangement((run,), (run,)), Policy()).arrangement.new[0].profile


def with_kernels(threshold: str = "") -> Profile:
    """Return a run in which three rounds of four calls launched a kernel twice per call."""
    builder = ProfileBuilder()
    above = 0
    for name in TEST:
        above = builder.add(above, name, FrameKind.TEST)
    setup = builder.add(above, "setup", FrameKind.TEST)
    builder.add(setup, "fill", FrameKind.KERNEL, metrics={"time (ns)": 9, "count": 1}, device=GPU)
    call = builder.add(above, "call", FrameKind.TEST)
    warm = builder.add(call, "warm-up", FrameKind.SCOPE)
    builder.add(warm, "mm", FrameKind.KERNEL, metrics={"time (ns)": 800, "count": 4}, device=GPU)
    rounds = builder.add(call, "rounds", FrameKind.SCOPE, metrics={"wall (ns)": 7})
    flush = builder.add(call, FLUSH, FrameKind.SCOPE)
    builder.add(flush, "memset", FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 3}, device=GPU)
    fwd = builder.add(rounds, "fwd", FrameKind.SCOPE)
    kernel = builder.add(
        fwd,
        "mm",
        FrameKind.KERNEL,
        metrics={"time (ns)": 2400, "count": 24},
        device=GPU,
        variant=Variant(code_hash="c1"),
    )
    builder.set_distribution(kernel, "time (ns)", Distribution.from_samples([100.0] * 24))
    own = builder.build(provenance={"host": "h"})
    return Profile.merge(
        [own, profile_of([record_of(gpu_ns=(50e3,) * 3, metric="cuda", threshold=threshold)])]
    )


def test_launches_below_a_benchmark_and_its_rounds_are_judged_by_their_medians() -> None:
    runs = [
        Run(replace(with_kernels(), provenance=facts), f"{number}.proton")
        for number in range(8)
        for facts in [Provenance({"host": "h", "pid": number, "start_time_ns": number})]
    ]

    result = gate_result(runs[:4], runs[4:], Policy().with_thresholds(["**@median:3%"]))

    assert {row.path[-1] for row in result.rows if not row.is_total} == {"mm", ROUND}
    assert {row.metric for row in result.rows} <= {"median", "tail", "total"}


def test_the_gate_sees_rounds_and_what_ran_in_them_for_one_call() -> None:
    seen = gated(with_kernels())
    test = "test_x.py::test_a"

    paths = [seen.path(row) for row in range(1, len(seen))]
    assert paths == [(test,), (test, "round"), (test, "fwd"), (test, "fwd", "mm")]
    assert value(seen, (test, "round"), "time (ns)") == 50e3
    assert value(seen, (test, "fwd", "mm"), "time (ns)") == 200.0
    assert value(seen, (test, "fwd", "mm"), "count") == 2.0
    assert value(seen, (test, "round"), "count") is None
    assert seen.device(4) == GPU
    variant = seen.variant(4)
    assert variant is not None
    assert variant.code_hash == "c1"
    times = seen.distributions["time (ns)"].get(4)
    assert times is not None
    assert times.n == 24
    assert seen.provenance["host"] == "h"


def test_canaries_stay_as_they_are() -> None:
    builder = ProfileBuilder()
    canary = builder.add(0, CANARY_SCOPE, FrameKind.SCOPE)
    builder.add(canary, "fma", FrameKind.KERNEL, metrics={"time (ns)": 70, "count": 7}, device=GPU)
    profile = Profile.merge([builder.build(), profile_of([record_of()])])

    seen = gated(profile)

    assert value(seen, (CANARY_SCOPE, "fma"), "time (ns)") == 70.0
    assert value(seen, (CANARY_SCOPE, "fma"), "count") == 7.0


def test_kernels_are_not_compared_with_times_between_events() -> None:
    base, new = (
        Run(profile_of([record_of(gpu_ns=(50e3,) * 3, metric="cuda", gpu_clock=clock)]), clock)
        for clock in ("gpu", "kernels")
    )

    with pytest.raises(UsageError, match="measure both sides again"):
        gate_result([base], [new], Policy())


def test_only_chosen_benchmarks_need_the_same_clock() -> None:
    base = [
        Run(
            profile_with(
                [record_of(A), record_of(B, gpu_ns=(5e3,), metric="cuda", gpu_clock=clock)], 1
            ),
            clock,
        )
        for clock in ("gpu", "kernels")
    ]
    new = Run(profile_with([record_of(A)], 2, **{CHOSEN_TESTS: True}), "new")

    assert compared_runs(Arrangement(tuple(base), (new,)), Policy())


def test_a_marker_may_gate_the_other_clock() -> None:
    record = record_of(gpu_ns=(50e3,) * 3, metric="cpu", device="cuda")

    seen = gated(profile_of([record]))

    assert value(seen, (record.id, "round"), "time (ns)") == 101e3


def test_work_that_a_marker_names_is_that_of_one_call() -> None:
    seen = gated(profile_of([record_of(flops=10.0, bytes=3.0)]))

    assert value(seen, (A, ROUND), "flops") == 10.0
    assert value(seen, (A, ROUND), "bytes") == 3.0


def test_a_format_without_single_rounds_has_the_median_all_the_same() -> None:
    whole = profile_of([record_of(cpu_ns=(100e3, 101e3, 500e3))])

    for profile in (whole, replace(whole, distributions={})):
        assert value(gated(profile), (A, ROUND), "time (ns)") == 101e3


# -- calibration -------------------------------------------------------------------------------
def launching(launches: int, *, calls: int, rounds: int, run: int) -> Run:
    """Return a run whose rounds launched one kernel ``launches`` times in all."""
    record = record_of(A, calls=calls, cpu_ns=(100e3,) * rounds)
    builder, row = ProfileBuilder(), 0
    for name, kind in record.path:
        row = builder.add(row, name, FrameKind(kind))
    metrics = {"time (ns)": 50.0 * launches, "count": launches}
    builder.add(row, "mm", FrameKind.KERNEL, metrics=metrics, device=GPU)
    return Run(Profile.merge([builder.build(), profile_with([record], run)]), f"{run}.proton")


@pytest.mark.parametrize(
    ("base", "new"),
    [
        ((40, 4, 10), (56, 8, 7)),  # one a call
        ((1, 4, 10), (1, 8, 50)),  # one in the first call of all
        ((4, 4, 10), (40, 8, 50)),  # one in ten calls
        ((5, 4, 11), (5, 8, 6)),  # one in ten calls, of which some are left over
    ],
)
def test_another_number_of_calls_is_not_a_change(
    base: tuple[int, int, int], new: tuple[int, int, int]
) -> None:
    runs = [
        launching(launches, calls=calls, rounds=rounds, run=place)
        for place, (launches, calls, rounds) in enumerate((base, new))
    ]

    result = gate_result(runs[:1], runs[1:], Policy().with_thresholds(["calls:0"]))

    assert result.structure == ()
    assert result.verdict is SuiteVerdict.PASS


def test_a_launch_more_in_every_other_call_is_a_change() -> None:
    base = launching(40, calls=4, rounds=10, run=0)
    new = launching(84, calls=8, rounds=7, run=1)

    result = gate_result([base], [new], Policy().with_thresholds(["calls:0"]))

    assert [each.kind for each in result.structure] == [Kind.LAUNCHES]
    assert result.verdict is SuiteVerdict.FAIL


def test_other_rounds_and_calls_do_not_change_times() -> None:
    base = runs_of({A: 100.0}, runs=6, seed=1, rounds=5, calls=4)
    new = runs_of({A: 100.0}, runs=6, seed=2, first=10, rounds=50, calls=64)

    result = gate_result(base, new, Policy().with_thresholds(["median:3%", "total:3%"]))

    assert {row.verdict for row in result.rows} == {Verdict.SAME}
    assert result.verdict is SuiteVerdict.PASS


# -- outside of the rounds ---------------------------------------------------------------------
def timed(setup_ns: float, *, run: int, warm_up_ns: float = 5e6) -> Run:
    """Return a run of a benchmark with elapsed times of its test, as `--proton` records them."""
    noise = random.Random(run).gauss(1.0, 0.01)
    record = record_of(cpu_ns=tuple(100e3 * noise for _ in range(3)), warmup=9)
    builder, row = ProfileBuilder(), 0
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    rounds_ns, setup_ns = 1.2e6 * noise, setup_ns * noise
    walls = {"call": rounds_ns + warm_up_ns, "rounds": rounds_ns}
    for name, kind in record.path:
        whole = setup_ns + walls["call"]
        above, row = row, builder.add(row, name, FrameKind(kind))
        builder.set(row, "wall (ns)", walls.get(name, whole))
        if name == "rounds":
            warm = builder.add(above, "warm-up", FrameKind.SCOPE)
            builder.set(warm, "wall (ns)", warm_up_ns)
    return Run(Profile.merge([builder.build(), profile_with([record], run)]), f"{run}.proton")


@pytest.mark.parametrize(
    ("setup_ns", "warm_up_ns", "verdict"),
    [(3e6, 5e6, "PASS"), (3e6, 50e6, "PASS"), (5e6, 5e6, "FAIL")],
)
def test_a_test_that_is_slower_outside_of_its_rounds_fails(
    setup_ns: float, warm_up_ns: float, verdict: str
) -> None:
    base = [timed(3e6, run=at) for at in range(6)]
    new = [timed(setup_ns, run=at, warm_up_ns=warm_up_ns) for at in range(10, 16)]

    result = gate_result(base, new, Policy())

    assert result.verdict == verdict
    assert {row.path for row in result.regressions} <= {(A, OUTSIDE)}


# -- which are asked about ---------------------------------------------------------------------
def rows(result: GateResult) -> dict[str, GateRow]:
    return {row.path[0]: row for row in result.rows if not row.is_extra}


def test_a_benchmark_is_asked_about_however_fast_it_is() -> None:
    base = runs_of({A: 1e6, B: 1.0}, runs=6, seed=1)
    new = runs_of({A: 1e6, B: 2.0}, runs=6, seed=2, first=10)

    result = gate_result(base, new, Policy())

    assert rows(result)[B].verdict is Verdict.REGRESSED
    assert result.verdict is SuiteVerdict.FAIL


def test_benchmarks_are_held_against_nothing_but_themselves() -> None:
    base = runs_of({A: 100.0, B: 100.0}, runs=6, seed=1)
    new = runs_of({A: 100.0, C: 150.0}, runs=6, seed=2, first=10)

    result = gate_result(base, new, Policy())

    assert list(rows(result)) == [A]
    assert {change.path: change.kind for change in result.structure} == {
        (B, ROUND): Kind.REMOVED,
        (C, ROUND): Kind.NEW,
    }
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [({}, SuiteVerdict.INCONCLUSIVE), ({CHOSEN_TESTS: True}, SuiteVerdict.PASS)],
)
def test_a_benchmark_that_is_gone_is_missed_unless_tests_were_chosen(
    facts: dict[str, object], verdict: SuiteVerdict
) -> None:
    base = runs_of({A: 100.0, B: 40.0}, runs=6, seed=1)
    new = runs_of({A: 100.0}, runs=6, seed=2, first=10, **facts)

    assert gate_result(base, new, Policy()).verdict is verdict


def test_benchmarks_that_were_not_chosen_are_not_removed() -> None:
    base = runs_of({A: 100.0, B: 40.0}, runs=6, seed=1)
    new = runs_of({A: 100.0}, runs=6, seed=2, first=10, **{CHOSEN_TESTS: True})
    others = runs_of({B: 40.0}, runs=6, seed=3, **{CHOSEN_TESTS: True})

    result = gate_result(base, new, Policy())

    assert (result.verdict, result.structure) == (SuiteVerdict.PASS, ())
    assert rows(result)[A].share == pytest.approx(1.0)
    assert gate_result(others, new, Policy()).verdict is SuiteVerdict.NO_BASELINE


def test_where_one_side_alone_holds_benchmarks_nothing_is_compared() -> None:
    with_some, without = [Run(with_kernels(), "a")], [Run(plain(), "b")]

    for base, new in ((with_some, without), (without, with_some)):
        result = gate_result(base, new, Policy())

        assert (result.verdict, result.exit_code) == (SuiteVerdict.NO_BASELINE, 5)
        assert result.notes[0].reason is Reason.NO_BASE
        assert "benchmarks of pytest" in result.notes[0].text


def test_a_run_of_a_side_that_lacks_benchmarks_is_named() -> None:
    runs = [Run(profile, name) for profile, name in ((with_kernels(), "a"), (plain(), "b"))]

    with pytest.raises(UsageError, match=r"'b' .*'a'"):
        gate_result(runs, [Run(with_kernels(), "c")], Policy())


def plain() -> Profile:
    builder = ProfileBuilder()
    builder.add(0, "mm", FrameKind.KERNEL, metrics={"time (ns)": 1, "count": 1}, device=GPU)
    return builder.build()


# -- thresholds of markers ---------------------------------------------------------------------
BASE = {A: 100.0, B: 40.0}


def marked_gate(before: str, after: str, *thresholds: str, slower: float = 1.13) -> GateResult:
    """Judge two benchmarks that are slower, the second of which has a marker on each side."""
    base = runs_of(BASE, runs=6, seed=1, thresholds={B: before} if before else {})
    times = {test: time * slower for test, time in BASE.items()}
    marks = {B: after} if after else {}
    new = runs_of(times, runs=6, seed=2, first=10, thresholds=marks)
    return gate_result(base, new, Policy().with_thresholds(thresholds))


def marked(text: str, *thresholds: str, slower: float = 1.13) -> dict[str, GateRow]:
    return rows(marked_gate(text, text, *thresholds, slower=slower))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "median:40%"),
        ("", "min:40%"),
        ("", "mean:900%"),
        ("median:4%", "median:40%"),
        ("median:4%", ""),
        ("median:4%", "median:40%&1ms"),
        ("median:4%", "p95:40%"),
    ],
)
def test_the_new_side_does_not_loosen_its_own_gate(before: str, after: str) -> None:
    result = marked_gate(before, after)

    slow = {row.path for row in result.regressions if row.metric == "median"}
    assert slow == {(A, ROUND), (B, ROUND)}


def test_a_looser_threshold_of_the_new_side_is_named() -> None:
    result = marked_gate("median:4%", "median:35%")

    (note,) = [each for each in result.notes if "looser" in each.text]
    assert "median:35%" in note.text
    assert "4%" in note.text
    assert not any("looser" in each.text for each in marked_gate("median:4%", "median:2%").notes)


def test_a_stricter_threshold_of_the_new_side_holds() -> None:
    result = marked_gate("median:30%", "median:5%")

    assert rows(result)[B].threshold.endswith("@median:5%")


def test_a_marker_holds_for_its_test_and_the_default_for_others() -> None:
    found = marked("median:20%")

    assert (found[A].threshold, found[A].verdict) == ("median:3%", Verdict.REGRESSED)
    assert found[B].threshold.endswith("@median:20%")
    assert found[B].verdict is Verdict.SAME


def test_a_threshold_of_the_command_line_wins_over_a_marker() -> None:
    assert marked("median:20%", "median:5%")[B].threshold == "median:5%"


def test_a_marker_does_not_bind_other_benchmarks() -> None:
    found = marked("median:20%", "calls:0")

    assert (found[A].threshold, found[A].verdict) == ("median:3%", Verdict.REGRESSED)


def test_a_marker_leaves_the_floors_of_others_alone() -> None:
    base = runs_of({A: 1000.0, B: 0.5}, runs=6, seed=1)
    new = runs_of({A: 1000.0, B: 0.55}, runs=6, seed=2, first=10, thresholds={A: "median:5%"})

    assert rows(gate_result(base, new, Policy()))[B].verdict is Verdict.SAME


def test_a_marker_about_launches_is_about_the_kernels_of_its_test() -> None:
    run = Run(with_kernels("calls:0"), "x")

    policy = compared_runs(Arrangement((run,), (run,)), Policy()).policy

    assert [str(each) for each in policy.thresholds][4:] == [rf"{ESCAPED}/**@calls:0"]


def test_names_of_tests_are_not_globs() -> None:
    record = record_of("a/b.py::t[*-?]", threshold="mean:5%")
    run = Run(profile_of([record]), "x")

    policy = compared_runs(Arrangement((run,), (run,)), Policy()).policy

    assert policy.thresholds[:4] == Policy().default_threshold().expanded()
    assert policy.thresholds[4].selector == r"a\/b.py::t[\*-\?]/round"


def test_a_threshold_that_means_nothing_is_named_with_its_file() -> None:
    run = Run(profile_of([record_of(threshold="median:5q")]), "x.proton")

    with pytest.raises(UsageError, match=r"'x\.proton'.*'median:5q'"):
        gate_result([Run(profile_of([record_of()]), "y")], [run], Policy())

"""Too few runs, empty ones, absurd values: an error that says what to do, or a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from fakes.earlier import as_open_below
from fakes.gated import Kernel, profile_of_times, reasons_of, row_of, session

from proton_bench.analysis.run import Run
from proton_bench.errors import MetricError, UsageError
from proton_bench.gate.policy import Policy, policy_from_table
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.decided_checks import Context
from proton_bench.gate.verdict.result import (
    GateResult,
    GateRow,
    Kind,
    Reason,
    SuiteVerdict,
    Verdict,
)
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.profile import Profile
from proton_bench.report.words.gate import reasons_text

QUIET = [Kernel(f"f/k{number}", between=0.003) for number in range(12)]


def runs_of(*times: Sequence[float], path: str = "f/k0") -> list[Run]:
    return [Run(profile_of_times({path: each}), "x.proton") for each in times]


def test_a_missing_base_is_no_baseline_and_a_missing_new_run_an_error() -> None:
    result = gate_result([], session(QUIET)[1], Policy())

    assert (result.verdict, result.exit_code) == (SuiteVerdict.NO_BASELINE, 5)
    with pytest.raises(UsageError, match="at least one new run"):
        gate_result(session(QUIET)[0], [], Policy())


def test_runs_with_nothing_in_common_have_no_baseline() -> None:
    result = gate_result(runs_of([1e5] * 5, path="a"), runs_of([3e5] * 9, path="b/c"), Policy())

    assert (result.verdict, result.exit_code) == (SuiteVerdict.NO_BASELINE, 5)
    assert {each.kind for each in result.structure} == {Kind.NEW, Kind.REMOVED}


def test_empty_runs_and_other_metrics_are_clear_errors() -> None:
    empty = [Run(ProfileBuilder().build(), "empty.proton")]
    other = ProfileBuilder()
    other.add(0, "k", FrameKind.KERNEL, metrics={"num_samples": 3})

    with pytest.raises(UsageError, match=r"'empty\.proton'"):
        gate_result(runs_of([1.0]), empty, Policy())
    with pytest.raises((UsageError, MetricError), match="no metric in common"):
        gate_result(runs_of([1.0]), [Run(other.build(), "y")], Policy())


def test_runs_that_recorded_nothing_are_not_judged_by_samples_of_the_host() -> None:
    sampled = ProfileBuilder()
    sampled.add(0, "<not recorded>", FrameKind.SCOPE, metrics={"host_wall (ns)": 3000})
    silent = [Run(sampled.build(), f"silent{number}.proton") for number in range(6)]
    sampled.add(0, "op", FrameKind.SCOPE, metrics={"wall (ns)": 5000})
    working = [Run(sampled.build(), f"working{number}.proton") for number in range(6)]

    for base, new in ((working, silent), (silent, working), (silent[:3], silent[3:])):
        with pytest.raises(UsageError, match=r"'silent\d\.proton' is empty"):
            gate_result(base, new, Policy())
    assert {row.path for row in gate_result(working[:3], working[3:], Policy()).rows} == {
        (),
        ("op",),
    }


def test_amounts_of_time_need_times() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"cycles": 300}, device=Device("CPU", 0))
    run = Run(builder.build(), "x")

    with pytest.raises(UsageError, match="'median:3us'"):
        gate_result([run], [run], Policy().with_thresholds(["median:3us"]))
    assert gate_result([run], [run], Policy()).verdict is SuiteVerdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ([[0.0, 0.0]] * 4, Reason.NO_VALUES),
        ([[-5.0, -3.0]] * 4, Reason.NO_VALUES),
    ],
)
def test_times_without_a_logarithm_are_inconclusive(
    times: list[list[float]], reason: Reason
) -> None:
    result = gate_result(
        runs_of(*times), runs_of(*times), Policy().with_thresholds(["k0@median:3%"])
    )

    assert row_of(result).reasons[0] is reason
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_absurd_spreads_are_inconclusive() -> None:
    base = runs_of([1e-200], [1e200], [1e-200], [1e250])

    result = gate_result(base, runs_of([1e-100], [1e200], [1e200], [1e-250]), Policy())

    assert row_of(result).verdict is Verdict.INCONCLUSIVE
    json.dumps(result.to_document(), allow_nan=False)


def test_values_that_are_not_numbers_are_left_out() -> None:
    def run(value: float) -> Run:
        builder = ProfileBuilder()
        builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": value, "count": 2.0})
        builder.add(0, "z", FrameKind.KERNEL, metrics={"time (ns)": 7.0, "count": 2.0})
        return Run(builder.build(), "x")

    base = [run(float("nan"))] * 4
    result = gate_result(base, [run(5.0)] * 4, Policy())

    assert {row.path for row in result.rows} == {("z",), ()}
    json.dumps(result.to_document(), allow_nan=False)


def test_equal_times_are_the_same_within_the_timers_resolution() -> None:
    times = [[64_000.0] * 10] * 4
    facts = {"collectors": {"cupti": {"devices": [{"tick_ns": 3200}]}}}

    exact = gate_result(runs_of(*times), runs_of(*times), Policy())
    coarse = [Run(profile_of_times({"f/k0": [64_000.0] * 10}, provenance=facts), "x")] * 4
    ticking = gate_result(coarse, coarse, Policy())

    assert row_of(exact).verdict is Verdict.SAME
    assert row_of(exact).high < 0.001
    assert row_of(ticking).high > 0.03
    assert row_of(ticking).verdict is Verdict.INCONCLUSIVE
    assert row_of(ticking).reasons[0] is Reason.TIMER_TICK
    assert row_of(ticking).pairs_needed == -1


def test_a_path_missing_in_some_runs_is_judged_by_the_others_or_not_at_all() -> None:
    base, new = session(QUIET)
    without, _ = session(QUIET[1:], seed=2)

    some = gate_result([*base[:5], without[5]], new, Policy())
    most = gate_result([*base[:2], *without[2:]], new, Policy())

    assert Reason.TOO_FEW_RUNS in row_of(some).reasons
    assert row_of(some).base_runs == 5
    assert row_of(some).verdict is Verdict.SAME
    assert row_of(most).reasons[0] is Reason.TOO_FEW_RUNS
    assert row_of(most).verdict is Verdict.INCONCLUSIVE


def test_runs_that_keep_no_launches_are_judged_by_means() -> None:
    def run(value: float) -> Run:
        builder = ProfileBuilder()
        builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": float(value) * 10, "count": 10})
        return Run(builder.build(), "x.hatchet")

    generator = np.random.default_rng(1)
    base = [run(1e5 * np.exp(generator.normal(0, 0.002))) for _ in range(6)]
    new = [run(1.1e5 * np.exp(generator.normal(0, 0.002))) for _ in range(6)]

    row = row_of(gate_result(base, new, Policy()), "k")
    p95 = gate_result(base, new, Policy().with_thresholds(["p95:3%"]))

    assert (row.verdict, row.metric) == (Verdict.REGRESSED, "mean")
    assert p95_of(p95).reasons[0] is Reason.NO_VALUES


@pytest.mark.parametrize("bare", [[0, 2, 4], range(6)])
def test_totals_by_the_fastest_launches_are_of_the_same_launches_in_all_runs(
    bare: Sequence[int],
) -> None:
    base, new = session([replace(each, within=0.3) for each in QUIET])
    some = [
        replace(run, profile=replace(run.profile, distributions={})) if at in bare else run
        for at, run in enumerate(new)
    ]

    result = gate_result(base, some, Policy().with_thresholds(["min:5%"]))

    (total,) = [row for row in result.rows if row.metric == "total"]
    assert abs(total.change) < 0.01
    assert {row.reasons[0] for row in result.rows if row.metric == "min"} == {Reason.NO_VALUES}
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_paths_without_single_launches_leave_the_fastest_launches_of_the_others() -> None:
    busy = [Kernel("f/k0", within=0.3), Kernel("f/k1", within=0.3)]
    base, new = session(busy)
    policy = Policy().with_thresholds(["min:5%"])

    def total_of(new: Sequence[Run]) -> float:
        (row,) = [row for row in gate_result(base, new, policy).rows if row.metric == "total"]
        return row.base

    def without_first(run: Run) -> Run:
        ((name, table),) = run.profile.distributions.items()
        entries = dict(table)
        del entries[min(entries)]
        kept = {name: DistributionTable.from_mapping(entries)}
        return replace(run, profile=replace(run.profile, distributions=kept))

    bare = [replace(run, profile=replace(run.profile, distributions={})) for run in new]
    both, one, none = map(total_of, (new, [without_first(run) for run in new], bare))

    assert both < one < none
    assert one == pytest.approx((both + none) / 2.0, rel=0.05)


@pytest.mark.parametrize("metric", ["mean", "instructions"])
@pytest.mark.parametrize("uncounted", [0, 1])
def test_values_of_one_launch_need_its_number_in_all_runs(uncounted: int, metric: str) -> None:
    def run(at: int, *, is_counted: bool) -> Run:
        builder = ProfileBuilder()
        metrics = {"time (ns)": 1e6 + 100.0 * (at % 5), "instructions": 1e6}
        metrics |= {"count": 10.0} if is_counted else {}
        builder.add(0, "k", FrameKind.KERNEL, metrics=metrics)
        return Run(builder.build(), f"{at}.hatchet")

    sides = [[run(at, is_counted=side != uncounted) for at in range(6)] for side in range(2)]
    result = gate_result(*sides, Policy().with_thresholds([f"{metric}:5%"]))
    none = gate_result(
        sides[uncounted], sides[uncounted], Policy().with_thresholds([f"{metric}:5%"])
    )

    (row,) = [row for row in result.rows if row.metric == metric and row.path == ("k",)]
    assert row.reasons[0] is Reason.NO_VALUES
    assert not result.regressions
    assert {row.verdict for row in none.rows} == {Verdict.SAME}


def p95_of(result: GateResult) -> GateRow:
    (row,) = [row for row in result.rows if row.metric == "p95"]
    return row


def with_samples(run: Run, change: Callable[[Distribution], Distribution]) -> Run:
    ((name, table),) = run.profile.distributions.items()
    changed = DistributionTable.from_mapping({row: change(entry) for row, entry in table})
    return Run(replace(run.profile, distributions={name: changed}), run.source)


def test_a_quantile_that_the_file_lacks_does_not_decide() -> None:
    kernel = Kernel("k", slower=np.log(1.5), launches=2000, within=0.3)
    base, new = session([kernel])
    open_base = [
        with_samples(run, lambda known: as_open_below(known, len(known.bucket_index) // 4))
        for run in base
    ]

    median = gate_result(open_base, new, Policy())
    p95 = gate_result(open_base, new, Policy().with_thresholds(["p95:5%"]))

    assert row_of(gate_result(base, new, Policy()), "k").verdict is Verdict.REGRESSED
    assert row_of(median, "k").verdict is Verdict.INCONCLUSIVE
    assert row_of(median, "k").reasons[0] is Reason.NO_VALUES
    assert median.verdict is SuiteVerdict.FAIL
    assert {row.path for row in median.regressions} == {()}
    assert p95_of(p95).verdict is Verdict.REGRESSED


def test_samples_of_a_part_of_the_launches_do_not_decide() -> None:
    kernel = Kernel("k", slower=np.log(1.5))
    base, new = session([kernel])
    bare = [replace(run.profile, distributions={}) for run in new]
    parts = [
        replace(run, profile=Profile.merge([run.profile, each]))
        for run, each in zip(new, bare, strict=True)
    ]

    row = row_of(gate_result(base, parts, Policy()), "k")
    p95 = gate_result(base, parts, Policy().with_thresholds(["p95:3%"]))

    assert row.metric == "mean"
    assert p95_of(p95).reasons[0] is Reason.NO_VALUES


@pytest.mark.parametrize(
    ("threshold", "is_mean"), [("median:3%", True), ("median:90%", False), ("median:1us", True)]
)
def test_a_median_that_is_not_known_closely_enough_gives_way_to_the_mean(
    threshold: str, is_mean: bool
) -> None:
    base, new = session([Kernel("k", slower=np.log(2.0), launches=200)])
    coarse = [with_samples(run, lambda known: known.with_gamma(1.08)) for run in new]

    row = row_of(gate_result(base, coarse, Policy().with_thresholds([threshold])), "k")
    p95 = gate_result(base, coarse, Policy().with_thresholds(["p95:3%"]))

    assert (row.metric == "mean") == is_mean
    assert row.verdict is Verdict.REGRESSED
    assert p95_of(p95).reasons[0] is Reason.NO_VALUES


def test_equal_names_are_distinguished_by_their_number() -> None:
    def run(seed: int) -> Run:
        builder = ProfileBuilder()
        generator = np.random.default_rng(seed)
        for _ in range(2):
            scope = builder.add(0, "s", FrameKind.SCOPE)
            builder.add(
                scope,
                "k",
                FrameKind.KERNEL,
                metrics={"time (ns)": 1e6 + float(generator.normal(0, 2e3)), "count": 1},
            )
        return Run(builder.build(), "x")

    result = gate_result([run(n) for n in range(4)], [run(n) for n in range(4, 8)], Policy())

    assert sorted((row.path, row.occurrence) for row in result.rows if row.path[1:]) == [
        (("s", "k"), 0),
        (("s", "k"), 1),
    ]


def test_one_order_alone_is_reported() -> None:
    base, new = session(QUIET, pairs=8)
    first = [0, 2, 4, 6]

    result = gate_result([base[n] for n in first], [new[n] for n in first], Policy())

    assert reasons_of(result) == {Reason.ORDER}
    assert result.verdict is SuiteVerdict.PASS


def base_first(kernels: Sequence[Kernel], pairs: int = 6) -> tuple[list[Run], list[Run]]:
    """Return pairs in which the base always ran first."""
    base, new = session(kernels, pairs=2 * pairs)
    return base[::2], new[::2]


@pytest.mark.parametrize("paths", [2, 12])
def test_a_change_that_running_second_could_explain_does_not_fail(paths: int) -> None:
    slower = [Kernel("f/k0", between=0.003, slower=0.2), *QUIET[1:paths]]

    result = gate_result(*base_first(slower), Policy())

    row = row_of(result)
    assert (row.verdict, row.downgraded) == (Verdict.INCONCLUSIVE, True)
    assert Reason.ORDER in row.reasons
    assert row.pairs_needed == 12
    assert (result.verdict, result.exit_code) == (SuiteVerdict.INCONCLUSIVE, 3)


def test_steady_canaries_show_that_running_second_does_nothing() -> None:
    canary = Kernel("<canary>/fma", between=0.0005)
    slower = [Kernel("f/k0", between=0.003, slower=0.2), *QUIET[1:], canary]

    result = gate_result(*base_first(slower), Policy())

    assert {row.path for row in result.regressions} == {("f", "k0")}


def test_other_paths_tell_what_the_order_does_to_a_path_that_has_only_one() -> None:
    """The gate as a whole has both orders; the path has not."""
    late = [Kernel("f/k0", between=0.003, slower=0.2), *QUIET[1:]]
    with_path, without = session(late, pairs=12), session(QUIET[1:], pairs=12, seed=2)
    base, new = (
        [(own if pair % 2 == 0 else other)[pair] for pair in range(12)]
        for own, other in zip(with_path, without, strict=True)
    )

    result = gate_result(base, new, Policy())

    assert row_of(result).verdict is Verdict.REGRESSED
    assert abs(row_of(result).order_effect) < 0.01


@pytest.mark.parametrize(
    ("written", "asked", "verdict"),
    [
        ([], ["calls:0"], SuiteVerdict.PASS),
        (["k0@2%"], ["calls:0"], SuiteVerdict.PASS),
        ([], ["calls:0", "5%"], SuiteVerdict.INCONCLUSIVE),
        (["calls:0"], [], SuiteVerdict.INCONCLUSIVE),
        ([], [], SuiteVerdict.INCONCLUSIVE),
    ],
)
def test_one_run_a_side_decides_launches_if_nothing_else_is_asked(
    written: list[str], asked: list[str], verdict: SuiteVerdict
) -> None:
    policy = policy_from_table({"thresholds": written}, "here").with_thresholds(asked)

    assert gate_result(*session(QUIET, pairs=1), policy).verdict is verdict


def test_a_threshold_of_launches_does_not_drop_timing() -> None:
    policy = Policy().with_thresholds(["calls:0"])

    assert gate_result(*session(QUIET), policy).verdict is SuiteVerdict.PASS
    slower = [Kernel("f/k0", between=0.003, slower=0.1), *QUIET[1:]]
    assert gate_result(*session(slower), policy).verdict is SuiteVerdict.FAIL


NOISY = [Kernel(f"f/k{at}", between=0.1, metrics={"instructions": 1e6}) for at in range(6)]


@pytest.mark.parametrize(
    ("instructions", "verdict"), [(1.05e6, Verdict.REGRESSED), (1e6, Verdict.SAME)]
)
def test_instructions_are_judged_where_times_are_noisy(
    instructions: float, verdict: Verdict
) -> None:
    more = [replace(NOISY[0], metrics={"instructions": instructions}), *NOISY[1:]]

    result = gate_result(
        session(NOISY)[0], session(more)[1], Policy().with_thresholds(["f/k0@instructions:2%"])
    )

    (row,) = (each for each in result.rows if each.metric == "instructions")
    assert row.path == ("f", "k0")
    assert row.verdict is verdict
    assert row.change == pytest.approx(instructions / 1e6 - 1.0)


@pytest.mark.parametrize("metric", ["instructions", "gbps"])
def test_a_threshold_of_what_was_not_recorded_is_named(metric: str) -> None:
    plain = [replace(each, metrics={}) for each in NOISY]
    policy = Policy().with_thresholds([f"{metric}:2%"])

    for base, new in ((plain, plain), (NOISY, plain)):
        result = gate_result(session(base)[0], session(new)[1], policy)

        assert result.verdict is SuiteVerdict.INCONCLUSIVE
        assert f"threshold '{metric}:2%' decides nothing" in result.notes[0].text


@pytest.mark.parametrize("metric", ["gbps", "flops", "instructions", "cycles", "mem"])
def test_paths_without_what_is_counted_are_not_asked_for_it(metric: str) -> None:
    counted = {"bytes": 1e9, "flops": 1e12, "instructions": 1e6, "cycles": 1e6, "mem": 1e6}
    kernels = [replace(each, metrics=counted if at < 2 else {}) for at, each in enumerate(QUIET)]

    result = gate_result(*session(kernels), Policy().with_thresholds([f"{metric}:5%"]))

    assert {row.path[-1] for row in result.rows if row.metric == metric} == {"k0", "k1"}
    assert result.verdict is SuiteVerdict.PASS


@pytest.mark.parametrize("lost", [0, 1])
def test_what_one_side_did_not_count_needs_other_recordings_and_not_more(lost: int) -> None:
    kernels = [replace(each, metrics={"bytes": 1e9}) for each in QUIET]
    sides = [kernels, kernels]
    sides[lost] = [replace(kernels[0], metrics={}), *kernels[1:]]

    result = gate_result(
        session(sides[0])[0], session(sides[1])[1], Policy().with_thresholds(["gbps:5%"])
    )

    (row,) = [row for row in result.rows if row.metric == "gbps" and row.path == ("f", "k0")]
    assert (row.verdict, row.reasons[0]) == (Verdict.INCONCLUSIVE, Reason.NO_VALUES)
    assert row.pairs_needed == 0
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_pairs_that_lack_a_path_do_not_count_among_those_that_decide() -> None:
    base, new = session(QUIET, pairs=6)
    without, _ = session(QUIET[1:], pairs=6, seed=2)

    row = row_of(gate_result([*base[:3], *without[3:]], new, Policy()))

    assert row.reasons[0] is Reason.TOO_FEW_RUNS
    assert row.pairs_needed == 8  # three lack it, four are needed, and orders are balanced


@pytest.mark.parametrize(("thresholds", "advised"), [([], True), (["k0@instructions:2%"], False)])
def test_a_noisy_gate_advises_to_gate_instructions(thresholds: list[str], advised: bool) -> None:
    result = gate_result(*session(NOISY), Policy().with_thresholds(thresholds))

    texts = [note.text for note in result.notes if note.reason is Reason.TOO_NOISY]
    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    assert any("instructions:" in text for text in texts) is advised


def test_nothing_large_enough_is_not_passed_over() -> None:
    result = gate_result(*session(QUIET), Policy(share=0.5))

    assert [row.path for row in result.rows] == [()]
    assert gate_result(*session(QUIET), Policy(), context=Context()).rows


@pytest.mark.parametrize("time_ns", [1e-300, 1e300])
def test_absurd_times_are_judged_without_a_traceback(time_ns: float) -> None:
    base, new = ([*runs_of(*[[time_ns] * 5] * 4)] for _side in range(2))

    result = gate_result(base, new, Policy())

    assert json.dumps(result.to_document(), allow_nan=False)
    assert not result.regressions


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (2, None, "missing in 1 of 6 new runs"),
        (5, 0.0, "0 or less in 1 of 6 new runs"),
    ],
)
def test_runs_without_a_time_of_a_path_are_counted(at: int, value: float | None, said: str) -> None:
    paths = {"f/k0": 70_000.0, "f/k1": 50_000.0, "f/k2": 90_000.0}

    def run(is_new: bool, number: int) -> Run:
        times = {path: [time * (1 + 0.001 * number)] * 5 for path, time in paths.items()}
        if is_new and number == at:
            del times["f/k1"]
            times |= {} if value is None else {"f/k1": [value] * 5}
        return Run(profile_of_times(times), f"{number}{is_new}")

    sides = [[run(is_new, number) for number in range(6)] for is_new in (False, True)]

    result = gate_result(*sides, Policy())

    row = row_of(result, "f/k1")
    assert row.causes == (said,)
    assert said in reasons_text(row, paired=False)
    assert row_of(result).causes == ()

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes.gated import GPU, H200, Kernel, process, reasons_of, row_of, session

from proton_bench.analysis.run import Run
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.notes import CONTROLS_MOVED, SHARED_NOISE
from proton_bench.gate.verdict.result import Reason, SuiteVerdict, Verdict
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind

QUIET = [Kernel(f"f/k{number}", between=0.003) for number in range(12)]


def changed(**of_first: Any) -> list[Kernel]:
    return [Kernel("f/k0", **{"between": 0.003, **of_first}), *QUIET[1:]]


def test_identical_programs_pass() -> None:
    result = gate_result(*session(QUIET), Policy())

    assert (result.verdict, result.exit_code, result.paired) == (SuiteVerdict.PASS, 0, True)
    assert {row.verdict for row in result.rows} == {Verdict.SAME}


def test_a_slowdown_fails_and_stands_first() -> None:
    result = gate_result(*session(changed(slower=0.05)), Policy())

    assert (result.verdict, result.exit_code) == (SuiteVerdict.FAIL, 1)
    first = result.rows[0]
    assert first.path == ("f", "k0")
    assert first.verdict is Verdict.REGRESSED
    assert first.reasons == ()
    assert first.low < first.change < first.high
    assert first.change == pytest.approx(np.expm1(0.05), abs=0.01)
    assert result.regressions == (first,)


def test_names_stay_recorded_beside_what_is_shown() -> None:
    name = "_ZN2at4fillIfEEvPf"
    kernels = [Kernel(f"f/{name}", between=0.003, slower=0.05), *QUIET[1:]]

    result = gate_result(*session(kernels), Policy())

    assert result.rows[0].path == ("f", name)
    assert result.texts.get(name) == "fill<float>"
    assert set(result.texts) <= {name}


def test_a_slowdown_is_found_beside_noise_that_all_paths_share() -> None:
    policy = Policy().with_thresholds(["median:5%"])

    result = gate_result(*session(changed(slower=0.1), shared=0.05), policy)

    assert SHARED_NOISE in result.notes
    (row,) = result.regressions
    assert row.path == ("f", "k0")
    assert row.low < row.change < row.high
    assert row.change == pytest.approx(np.expm1(0.1), abs=0.02)


def test_a_slowdown_of_all_paths_is_not_taken_for_noise_that_they_share() -> None:
    slower = [replace(each, slower=0.4) for each in QUIET]

    result = gate_result(*session(slower, shared=0.02), Policy())

    assert result.verdict is SuiteVerdict.FAIL
    assert {row.verdict for row in result.rows} == {Verdict.REGRESSED}
    assert SHARED_NOISE not in result.notes


def test_a_speedup_is_reported_and_passes() -> None:
    result = gate_result(*session(changed(slower=-0.08)), Policy())

    assert row_of(result).verdict is Verdict.IMPROVED
    assert result.verdict is SuiteVerdict.PASS


def test_drift_of_the_machine_is_not_a_change() -> None:
    result = gate_result(*session(QUIET, drift=0.02), Policy())

    assert result.verdict is SuiteVerdict.PASS
    assert row_of(result).order_effect == pytest.approx(0.02, abs=0.005)


def test_the_same_runs_give_the_same_document_with_schema_and_version() -> None:
    base, new = session(changed(slower=0.05))

    documents = [gate_result(base, new, Policy()).to_document() for _ in range(2)]

    assert documents[0] == documents[1]
    document = json.loads(json.dumps(documents[0], allow_nan=False))
    assert (document["schema"], document["version"]) == ("proton_bench.gate", [3, 0])
    assert (document["verdict"], document["exit_code"]) == ("FAIL", 1)
    assert document["rows"][0]["path"] == ["f", "k0"]
    assert document["rows"][0]["verdict"] == "REGRESSED"
    assert "comparison" not in document


@pytest.mark.parametrize("pairs", [1, 2, 3])
def test_too_few_runs_decide_no_timing(pairs: int) -> None:
    result = gate_result(*session(changed(slower=0.5), pairs=pairs), Policy())

    assert (result.verdict, result.exit_code) == (SuiteVerdict.INCONCLUSIVE, 3)
    assert row_of(result).reasons[0] is Reason.TOO_FEW_RUNS
    assert row_of(result).pairs_needed == 6


def test_a_noisy_path_is_inconclusive_and_says_what_it_needs() -> None:
    result = gate_result(*session(changed(between=0.02), seed=4), Policy())

    row = row_of(result)
    assert (row.verdict, row.reasons[0]) == (Verdict.INCONCLUSIVE, Reason.TOO_NOISY)
    assert row.findable > 0.03
    assert row.pairs_needed > 6
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_an_undecided_gate_may_pass_if_the_policy_says_so() -> None:
    result = gate_result(*session(QUIET, pairs=2), Policy(inconclusive_passes=True))

    assert (result.verdict, result.exit_code) == (SuiteVerdict.INCONCLUSIVE, 0)


def test_a_gate_by_the_fastest_launches_says_that_it_does_not_see_slow_ones() -> None:
    kernels = [Kernel(f"f/k{n}", between=0.003, within=0.01) for n in range(4)]
    base, new = session([*kernels[1:], Kernel("f/k0", between=0.003, within=0.4)])

    result = gate_result(base, new, Policy().with_thresholds(["min:5%"]))

    assert (result.statistic, gate_result(base, new, Policy()).statistic) == ("min", "")
    assert {row.metric for row in result.rows} == {"min", "total"}


def test_undecided_paths_of_little_time_do_not_matter_unless_named() -> None:
    small = [Kernel("f/s", 30_000.0, between=0.1), *QUIET]
    named = Policy().with_thresholds(["median:3%", "s@median:3%"])

    assert gate_result(*session(small, seed=2), Policy()).verdict is SuiteVerdict.PASS
    assert gate_result(*session(small, seed=2), named).verdict is SuiteVerdict.INCONCLUSIVE


def test_small_changes_of_short_kernels_are_below_the_floor() -> None:
    short = [Kernel("f/s", 1_000.0, between=0.002, slower=0.08, launches=60), *QUIET]

    floor = row_of(gate_result(*session(short), Policy(share=0.0001)), "f/s")
    asked = Policy().with_thresholds(["s@median:3%"])
    written = row_of(gate_result(*session(short), asked), "f/s")

    assert floor.verdict is Verdict.SAME
    assert written.verdict is Verdict.REGRESSED


@pytest.mark.parametrize("slower", [0.0, 0.2])
def test_nothing_below_the_threshold_is_findable(slower: float) -> None:
    kernels = [replace(each, slower=slower) for each in QUIET]

    result = gate_result(*session(kernels), Policy().with_thresholds(["50%"]))

    assert result.verdict is SuiteVerdict.PASS
    assert [row.findable for row in result.rows] == pytest.approx(
        [row.limit for row in result.rows]
    )
    assert min(row.limit for row in result.rows) == pytest.approx(0.5)


def test_noise_and_floors_hide_more_than_the_threshold() -> None:
    short = Kernel("f/s", 1_000.0, between=0.0001, within=0.001, launches=60)
    noisy = [replace(each, between=0.006) for each in QUIET]

    floor = row_of(gate_result(*session([short, *QUIET], shared=0.0), Policy(share=0.0001)), "f/s")
    noise = row_of(gate_result(*session(noisy), Policy()))

    assert 0.1 < floor.findable < 0.11
    assert noise.findable > noise.limit


@pytest.mark.parametrize(
    ("threshold", "verdict"),
    [
        ("median:3%&1us", Verdict.REGRESSED),
        ("median:3%&10us", Verdict.SAME),
        ("median:3us", Verdict.REGRESSED),
        ("median:20us", Verdict.SAME),
        ("mean:10%", Verdict.SAME),
        ("p95:3%", Verdict.REGRESSED),
        ("k0@total:3%", Verdict.REGRESSED),
        ("f@total:9%", Verdict.SAME),
        ("min:3%", Verdict.REGRESSED),
        ("tail:3%", Verdict.REGRESSED),
        ("6%", Verdict.REGRESSED),
        ("9%", Verdict.SAME),
    ],
)
def test_thresholds_of_users(threshold: str, verdict: Verdict) -> None:
    result = gate_result(*session(changed(slower=0.07)), Policy().with_thresholds([threshold]))

    rows = {row.threshold: row for row in result.rows if row.path in {("f", "k0"), ("f",)}}
    assert rows.get(threshold, rows.get(f"median:{threshold}")).verdict is verdict  # type: ignore[union-attr]


def test_rates_fall_when_kernels_slow_down() -> None:
    work = changed(slower=0.1, metrics={"flops16": 2e9, "bytes": 1e6})
    policy = Policy().with_thresholds(["k0@flops:3%", "k0@gbps:3%"])

    result = gate_result(*session(work), policy)

    rates = [row for row in result.rows if row.metric in {"flops", "gbps"}]
    assert [row.verdict for row in rates] == [Verdict.REGRESSED] * 2
    flops = next(row for row in result.rows if row.metric == "flops")
    assert flops.base == pytest.approx(2e9 / (20 * 100e-6), rel=0.02)


def test_the_last_threshold_of_a_path_governs_it() -> None:
    texts = ["median:3%", "f/k0@median:20%", "f/k0@p95:20%", "f/k0@tail:20%"]

    result = gate_result(*session(changed(slower=0.07)), Policy().with_thresholds(texts))

    assert {row.threshold for row in result.rows if row.path == ("f", "k0")} == set(texts[1:])
    assert result.verdict is SuiteVerdict.PASS


def test_a_threshold_about_nothing_is_not_passed_over() -> None:
    result = gate_result(*session(QUIET), Policy().with_thresholds(["median:3%", "sofmax*@p95:3%"]))

    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    assert reasons_of(result) == {Reason.NOTHING_GATED}
    assert "sofmax*@p95:3%" in result.notes[0].text


def test_quarantined_paths_are_shown_and_never_fail() -> None:
    result = gate_result(*session(changed(slower=0.1)), Policy(quarantine=("f/k0", "f/k1")))

    rows = [row_of(result), row_of(result, "f/k1")]
    assert [row.verdict for row in rows] == [Verdict.INCONCLUSIVE, Verdict.SAME]
    assert [row.reasons for row in rows] == [(Reason.QUARANTINE,)] * 2
    assert result.verdict is SuiteVerdict.PASS


def test_a_path_whose_code_is_the_same_does_not_fail_and_does_not_pass() -> None:
    base, new = session(changed(slower=0.06, code="c"))

    result = gate_result(base, new, Policy())

    row = row_of(result)
    assert (row.verdict, row.reasons) == (Verdict.INCONCLUSIVE, (Reason.SAME_CODE,))
    assert row_of(result).same_binary
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_changed_code_is_reported() -> None:
    result = gate_result(*session(changed(slower=0.06, code="a", new_code="b")), Policy())

    assert row_of(result).verdict is Verdict.REGRESSED
    assert Reason.CODE_CHANGED in row_of(result).reasons


def test_another_choice_of_an_autotuner_is_reported() -> None:
    def run(at: int, config: str) -> Run:
        builder = ProfileBuilder()
        metrics = {"time (ns)": 1e6 + at, "count": 1}
        variant = Variant(code_hash=config, config=config)
        builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, variant=variant)
        return Run(builder.build(), "x")

    result = gate_result(
        [run(at, "a") for at in range(4)], [run(at, "b") for at in range(4)], Policy()
    )

    assert Reason.CODE_CHANGED in row_of(result, "k").reasons


def test_trials_of_autotuners_count_nowhere() -> None:
    def run(at: int, spent: float) -> Run:
        builder = ProfileBuilder()
        builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 1e6 + at, "count": 1})
        trials = builder.add(0, "<autotune>", FrameKind.STATE)
        for name in ("k", "other"):
            builder.add(trials, name, FrameKind.KERNEL, metrics={"time (ns)": spent, "count": 9})
        return Run(builder.build(), "x")

    sides = ([run(at, spent) for at in range(4)] for spent in (1e6, 9e6))

    result = gate_result(*sides, Policy())

    assert result.verdict is SuiteVerdict.PASS
    assert {row.path[-1] for row in result.rows if row.path} == {"k"}


def test_a_noisy_metric_does_not_blunt_another() -> None:
    both = Policy().with_thresholds(["median:3%", "p95:50%"])
    spread = changed(slower=0.05, within=0.15, launches=60)

    result = gate_result(*session(spread), both)
    rows = {row.metric: row for row in result.rows if row.path == ("f", "k0")}
    alone = row_of(gate_result(*session(spread), Policy().with_thresholds(["median:3%"])))

    assert rows["median"].low == pytest.approx(alone.low)
    assert rows["p95"].high - rows["p95"].low > rows["median"].high - rows["median"].low


def test_controls_that_moved_void_the_session() -> None:
    kernels = [Kernel(f"f/k{n}", between=0.003, slower=0.06, code=f"c{n}") for n in range(10)]
    kernels.append(Kernel("f/own", between=0.003, slower=0.06))

    result = gate_result(*session(kernels), Policy())

    assert CONTROLS_MOVED in result.notes
    assert reasons_of(result) >= {Reason.MACHINE, Reason.NOTICE}
    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    assert not result.regressions


def test_canaries_that_moved_make_sides_incomparable() -> None:
    kernels = [Kernel("<canary>/fma", slower=0.03), *changed(slower=0.06)]

    result = gate_result(*session(kernels), Policy())

    assert result.verdict is SuiteVerdict.INCOMPARABLE
    assert result.canaries.count == 1
    assert result.canaries.shift == pytest.approx(0.03, abs=0.005)
    assert ("<canary>", "fma") not in {row.path for row in result.rows}


def test_canaries_that_warm_a_device_up_say_nothing() -> None:
    kernels = [Kernel("<canary>/<warm-up>/fma", slower=0.3), Kernel("<canary>/fma"), *QUIET]

    result = gate_result(*session(kernels), Policy())

    assert result.verdict is SuiteVerdict.PASS
    assert result.canaries.count == 1
    assert not {row.path for row in result.rows if row.path[:1] == ("<canary>",)}


def clocked(kernels: Sequence[Kernel], clocks: dict[bool, float]) -> tuple[list[Run], list[Run]]:
    generator = np.random.default_rng(1)
    sides: dict[bool, list[Run]] = {False: [], True: []}
    for at in range(12):
        is_new = at % 4 in {1, 2}
        facts = {"canary": {"sm_clock_hz": clocks[is_new]}}
        sides[is_new].append(process(kernels, generator, new=is_new, at=at, **facts))
    return sides[False], sides[True]


def test_a_clock_that_varies_in_both_sides_explains_nothing() -> None:
    generator = np.random.default_rng(1)
    sides: dict[bool, list[Run]] = {False: [], True: []}
    for at in range(12):
        is_new = at % 4 in {1, 2}
        clock = 1.98e9 * (1.0 + 0.012 * (at % 3 - 1))
        facts = {"canary": {"sm_clock_hz": clock}}
        sides[is_new].append(process(changed(slower=0.05), generator, new=is_new, at=at, **facts))

    assert row_of(gate_result(sides[False], sides[True], Policy())).verdict is Verdict.REGRESSED


def test_what_the_clock_explains_is_not_a_regression() -> None:
    kernels = changed(slower=0.05)

    slower_clock = gate_result(*clocked(kernels, {False: 1.98e9, True: 1.98e9 / 1.05}), Policy())
    same_clock = gate_result(*clocked(kernels, {False: 1.98e9, True: 1.98e9}), Policy())

    row = row_of(slower_clock)
    assert (row.verdict, row.reasons[0]) == (Verdict.INCONCLUSIVE, Reason.CLOCK)
    assert slower_clock.verdict is SuiteVerdict.INCONCLUSIVE
    assert same_clock.verdict is SuiteVerdict.FAIL


# -- fingerprints --------------------------------------------------------------------------------
def with_facts(runs: Sequence[Run], **facts: Any) -> list[Run]:
    found = []
    for run in runs:
        profile = ProfileBuilder().build()
        copied = {name: getattr(run.profile, name) for name in _FIELDS}
        provenance = run.profile.provenance.updated(**facts)
        found.append(Run(type(profile)(**{**copied, "provenance": provenance}), run.source))
    return found


_FIELDS = (
    "strings",
    "parents",
    "frames",
    "kinds",
    "device_rows",
    "variant_rows",
    "devices",
    "variants",
    "columns",
    "distributions",
    "partial",
)


def test_other_devices_are_incomparable_unless_ignored() -> None:
    base, new = session(QUIET)
    new = with_facts(new, gpus_at_start=[{**GPU, "name": "NVIDIA H100"}])

    result = gate_result(base, new, Policy())

    assert (result.verdict, result.exit_code) == (SuiteVerdict.INCOMPARABLE, 4)
    assert "NVIDIA H200 before, NVIDIA H100 now" in result.notes[0].text
    assert gate_result(base, new, Policy(ignore_devices=True)).verdict is SuiteVerdict.PASS


def test_another_unit_keeps_a_stored_base_from_failing_and_pairs_not() -> None:
    base, new = session(changed(slower=0.1))
    elsewhere = with_facts(new, gpus_at_start=[{**GPU, "uuid": "GPU-2"}])
    stored = [Run(run.profile, run.source) for run in with_facts(base, start_time_ns=None)]

    paired = gate_result(base, elsewhere, Policy())
    apart = gate_result(stored, elsewhere, Policy())

    assert paired.verdict is SuiteVerdict.FAIL
    assert not apart.paired
    assert row_of(apart).reasons[0] is Reason.MACHINE
    assert apart.verdict is SuiteVerdict.INCONCLUSIVE


HOT = {**GPU, "throttle_reasons": 32}


def test_a_disturbed_run_costs_its_pair() -> None:
    base, new = session(changed(slower=0.1), pairs=8)
    hot = with_facts(new[:1], gpus_at_end=[HOT])

    result = gate_result(base, [*hot, *new[1:]], Policy())

    assert reasons_of(result) == {Reason.NOTICE}
    assert "pair 1: clocks: heat" in result.notes[0].text
    assert result.verdict is SuiteVerdict.FAIL
    assert {(row.base_runs, row.new_runs) for row in result.rows} == {(7, 7)}


def test_too_few_pairs_that_nothing_disturbed_are_not_judged() -> None:
    base, new = session(QUIET, pairs=6)
    hot = with_facts(new[:3], gpus_at_end=[HOT])

    result = gate_result(base, [*hot, *new[3:]], Policy())

    assert {row.reasons[0] for row in result.rows} == {Reason.TOO_FEW_RUNS}
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_what_disturbs_every_pair_makes_a_session_inconclusive() -> None:
    base, new = session(QUIET)

    result = gate_result(base, with_facts(new, gpus_at_end=[HOT]), Policy())

    assert reasons_of(result) == {Reason.MACHINE}
    assert "clocks: nothing before, heat now" in result.notes[0].text
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_other_tools_are_reported_and_compared() -> None:
    base, new = session(changed(slower=0.05))

    result = gate_result(with_facts(base, triton="3.6"), with_facts(new, triton="3.7"), Policy())

    assert reasons_of(result) == {Reason.NOTICE}
    assert result.verdict is SuiteVerdict.FAIL


# -- what made it slower -------------------------------------------------------------------------
def run_with_registers(at: int, *, registers: int, time_ns: float) -> Run:
    builder = ProfileBuilder()
    variant = Variant(
        code_hash=f"{registers}", grid=(9999, 1, 1), block=(256, 1, 1), registers=registers
    )
    noise = float(np.random.default_rng(at).normal(1.0, 0.001))
    builder.add(
        builder.add(0, "fwd", FrameKind.SCOPE),
        "softmax",
        FrameKind.KERNEL,
        metrics={"time (ns)": time_ns * noise, "count": 1},
        device=H200,
        variant=variant,
    )
    return Run(builder.build(), "x")


def test_a_slower_kernel_says_what_else_changed_about_it() -> None:
    base = [run_with_registers(at, registers=64, time_ns=1e6) for at in range(6)]
    new = [run_with_registers(at, registers=168, time_ns=1.2e6) for at in range(6, 12)]

    row = row_of(gate_result(base, new, Policy()), "fwd/softmax")

    assert row.verdict is Verdict.REGRESSED
    assert Reason.CODE_CHANGED in row.reasons
    (cause,) = row.causes
    assert cause.startswith("occupancy ")
    assert cause.endswith("(registers 64 -> 168)")


def test_the_run_that_a_report_explains_is_the_compared_one() -> None:
    result = gate_result(*session(changed(slower=0.1)), Policy())

    assert result.comparison is not None
    assert len(result.comparison.base) == len(result.base_runs) == 6
    assert gate_result([], session(QUIET)[1], Policy()).comparison is None


@pytest.mark.parametrize("beside", ["<canary>/c", "flaky/k"])
def test_the_run_that_a_report_explains_has_what_is_judged(beside: str) -> None:
    kernels = [replace(each, slower=0.05) for each in QUIET]
    big = Kernel(beside, time_ns=2_000_000.0, between=0.0003, slower=-0.005)

    result = gate_result(*session([*kernels, big], shared=0.0), Policy(quarantine=("flaky/**",)))

    assert result.comparison is not None
    values = result.comparison.inclusive
    (run,) = [row for row in result.rows if not row.path]
    assert run.verdict is Verdict.REGRESSED
    assert values.new[0] / values.base[0] - 1.0 == pytest.approx(run.change, abs=1e-3)


def run_on_devices(at: int, devices: int, *, slower: float) -> Run:
    """Return a run of ten kernels on each device, with a slower one on the last device."""
    noise = np.random.default_rng(at)
    builder = ProfileBuilder()
    scope = builder.add(0, "f", FrameKind.SCOPE)
    for index in range(devices):
        for number in range(10):
            time_ns = 2e6 * (slower if (index, number) == (devices - 1, 0) else 1.0)
            builder.add(
                scope,
                f"k{number}",
                FrameKind.KERNEL,
                metrics={"time (ns)": time_ns * noise.normal(1.0, 0.001), "count": 20},
                device=replace(H200, index=index),
            )
    span = {"start_time_ns": at * 10**9, "end_time_ns": at * 10**9 + 10**8}
    return Run(builder.build(provenance={"host": "here", **span}), f"{at}.proton")


@pytest.mark.parametrize(("devices", "expected"), [(1, ""), (3, "CUDA:2")])
def test_a_path_of_several_devices_names_the_one_that_got_slower(
    devices: int, expected: str
) -> None:
    sides: tuple[list[Run], list[Run]] = ([], [])
    for at in range(12):
        is_new = at % 4 in {1, 2}
        sides[is_new].append(run_on_devices(at, devices, slower=1.2 if is_new else 1.0))

    result = gate_result(*sides, Policy())

    assert {row.device for row in result.regressions if row.path == ("f", "k0")} == {expected}
    assert {row.device for row in result.rows if row.is_total} == {""}


def test_a_small_path_whose_interval_is_above_its_threshold_does_not_pass() -> None:
    small = Kernel("f/small", 30_000.0, between=0.05, slower=0.2)

    result = gate_result(*session([*QUIET, small]), Policy())

    row = row_of(result, "f/small")
    assert row.verdict is Verdict.INCONCLUSIVE
    assert row.low > row.limit
    assert row.share < 0.05
    assert result.verdict is SuiteVerdict.INCONCLUSIVE

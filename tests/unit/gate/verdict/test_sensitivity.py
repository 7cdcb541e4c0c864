from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from fakes.gated import SECOND_NS, Kernel, profile_of_times, session
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from proton_bench.analysis.run import Run
from proton_bench.gate.experiment import Rate, resample_false_alarms
from proton_bench.gate.policy import Policy, parse_threshold
from proton_bench.gate.statistics.arrangement import arrange
from proton_bench.gate.statistics.decision import (
    Background,
    Evidence,
    Limits,
    detectable_with,
    weigh,
)
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.decided_checks import Context
from proton_bench.gate.verdict.notes import Sensitivity, advice, sensitivity_of
from proton_bench.gate.verdict.result import GateResult, Reason, SuiteVerdict, Verdict
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation

PATHS = 20


ORDER = [1.0, -1.0] * 5


EVEN = np.full(PATHS, 1.0 / PATHS)


NOTHING = np.array([])


LIMITS = Limits(np.full(PATHS, 0.03), np.ones(PATHS))


def evidence_of(deviation: float) -> Evidence:
    """Return evidence of paths whose pairs have this standard deviation."""
    rng = np.random.default_rng(5)
    base, new = rng.normal(0.0, deviation / math.sqrt(2.0), (2, len(ORDER), PATHS))
    nothing = Background(np.zeros(PATHS), np.zeros(PATHS), ["median"] * PATHS)
    return weigh(base, new, ORDER, background=nothing, margin=LIMITS.margin, fewest_runs=4)


@given(st.sampled_from([0.005, 0.01, 0.02]), st.integers(6, 30))
def test_more_pairs_and_less_noise_see_more(deviation: float, pairs: int) -> None:
    evidence = evidence_of(deviation)
    found = detectable_with(pairs, evidence, LIMITS.margin)

    assert (detectable_with(pairs + 2, evidence, LIMITS.margin) < found).all()
    assert (found < detectable_with(pairs, evidence_of(2.0 * deviation), LIMITS.margin)).all()


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=30), st.data())
def test_only_a_twentieth_of_the_time_may_see_less(paths: list[float], data: st.DataObject) -> None:
    shares = np.array([data.draw(st.floats(0.001, 1.0)) for _ in paths])

    found = sensitivity_of("min", np.array(paths), shares, totals=NOTHING, run=NOTHING)

    worse = np.expm1(paths) > found.path * (1.0 + 1e-12)
    assert shares[worse].sum() <= 0.05 * shares.sum() * (1.0 + 1e-12)
    at_least = np.expm1(paths) >= found.path * (1.0 - 1e-12)
    assert shares[at_least].sum() > 0.05 * shares.sum() * (1.0 - 1e-12)


def test_the_run_and_large_scopes_hold_the_threshold_too() -> None:
    paths = np.full(PATHS, 0.02)

    found = sensitivity_of("min", paths, EVEN, totals=np.array([0.01, 0.05]), run=np.array([0.01]))

    assert found.path == pytest.approx(math.expm1(0.02))
    assert found.run == pytest.approx(math.expm1(0.01))
    assert found.held == pytest.approx(math.expm1(0.05))


@pytest.mark.parametrize("paths", [NOTHING, np.full(PATHS, np.inf), np.full(PATHS, 500.0)])
def test_noise_that_is_unknown_or_absurd_holds_nothing(paths: np.ndarray) -> None:
    shares = np.full(len(paths), 1.0)

    assert math.isinf(sensitivity_of("min", paths, shares, totals=NOTHING, run=NOTHING).held)


def seen(metric: str, held: float) -> Sensitivity:
    return Sensitivity(metric, held, held / 2.0, held)


@pytest.mark.parametrize(
    ("by_min", "threshold"),
    [(0.039, "min:4%"), (0.041, "min:5%"), (0.0001, "min:0.5%"), (0.09, "median:12%")],
)
def test_the_best_statistic_is_advised_if_it_is_much_better(by_min: float, threshold: str) -> None:
    said = advice("median", [seen("median", 0.11), seen("min", by_min)])

    assert f"the threshold {threshold}" in said
    assert parse_threshold(threshold).ratio is not None


@pytest.mark.parametrize(
    "of_statistics",
    [[], [seen("min", 0.04)], [seen("median", math.inf), seen("min", math.inf)]],
)
def test_without_known_noise_there_is_no_advice(of_statistics: list[Sensitivity]) -> None:
    assert advice("median", of_statistics) == ""


def test_noise_beyond_use_advises_no_threshold() -> None:
    said = advice("median", [Sensitivity("median", 1.5, math.nan, 1.5)])

    assert said
    assert "-t" not in said


# -- in a gate -----------------------------------------------------------------------------------
NOISY = [Kernel(f"f/k{number}", between=0.03) for number in range(PATHS)]


def runs_with_quiet_moments(pairs: int, slower: float = 0.0) -> tuple[list[Run], list[Run]]:
    """Return runs in turn of which each is slower by a random amount, but for some launches.

    Args:
        pairs: Runs of each side.
        slower: By how much more all launches of the new side take, on the log scale.
    """
    rng = np.random.default_rng(7)
    sides: tuple[list[Run], list[Run]] = ([], [])
    for at in range(2 * pairs):
        load, is_new = rng.normal(0.3, 0.1), at % 4 in {1, 2}
        times = {
            f"f/k{path}": 1e5 * np.exp(rng.normal([0.0] * 5 + [load] * 15, 0.002) + is_new * slower)
            for path in range(PATHS)
        }
        span = {"start_time_ns": at * SECOND_NS, "end_time_ns": at * SECOND_NS + SECOND_NS // 2}
        sides[is_new].append(Run(profile_of_times(times, provenance=span), f"{at}"))
    return sides


def as_scopes(run: Run) -> Run:
    """Return a run that has entered a scope where another launched a kernel."""
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    profile = run.profile
    for row, times in profile.distributions["time (ns)"]:
        place = builder.add(0, profile.name(row), FrameKind.SCOPE)
        builder.set(place, "wall (ns)", float(profile.columns["time (ns)"].values[row]))
        builder.set_distribution(place, "wall (ns)", times)
    return Run(builder.build(provenance=profile.provenance.to_plain()), run.source)


def texts(result: GateResult) -> list[str]:
    return [note.text for note in result.notes if note.reason is Reason.TOO_NOISY]


def test_an_inconclusive_gate_says_what_can_be_held() -> None:
    result = gate_result(*session(NOISY, pairs=6), Policy())

    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    (said,) = texts(result)
    assert "by median" in said


def test_a_statistic_of_quiet_moments_is_advised() -> None:
    runs = runs_with_quiet_moments(6)
    result = gate_result(*runs, Policy())
    (said,) = texts(result)

    expression = said.split("the threshold ")[1].split(";")[0]
    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    assert expression.startswith("min:")
    assert gate_result(*runs, Policy().with_thresholds([expression])).verdict is SuiteVerdict.PASS


@pytest.mark.parametrize("recorded", [lambda run: run, as_scopes], ids=["kernels", "scopes"])
def test_a_gate_by_the_minimum_sums_it_for_the_whole_run(recorded: Callable[[Run], Run]) -> None:
    base, new = (list(map(recorded, side)) for side in runs_with_quiet_moments(6))
    slower = [recorded(run) for run in runs_with_quiet_moments(6, slower=0.3)[1]]

    by_min = Policy().with_thresholds(["min:5%"])
    alike, changed = (gate_result(base, side, by_min) for side in (new, slower))

    run, *_ = [row for row in alike.rows if row.path == ()]
    assert run.base == pytest.approx(PATHS * 20 * 1e5, rel=0.02)
    assert abs(run.change) < 0.01
    worst, *_ = [row for row in changed.rows if row.path == ()]
    assert (worst.verdict, changed.verdict) == (Verdict.REGRESSED, SuiteVerdict.FAIL)
    assert {row.metric for row in changed.rows} == {"min", "total"}


def test_the_advice_changes_no_row_and_no_verdict() -> None:
    runs = session(NOISY, pairs=6)

    few, many = (gate_result(*runs, Policy(), context=Context(pairs=pairs)) for pairs in (0, 30))

    assert few.rows == many.rows
    assert few.verdict is many.verdict
    assert texts(few) != texts(many)


@pytest.mark.parametrize(("noise", "threshold"), [(0.002, "median:3%"), (0.03, "median:200%")])
def test_without_hidden_launch_times_nothing_is_advised(noise: float, threshold: str) -> None:
    kernels = [dataclasses.replace(each, between=noise) for each in NOISY]

    result = gate_result(*session(kernels, pairs=6), Policy().with_thresholds([threshold]))

    assert texts(result) == []


def test_unchanged_code_passes_by_the_advised_threshold() -> None:
    runs = session(NOISY, pairs=10, seed=3)
    (said,) = texts(gate_result(*runs, Policy()))

    expression = said.split("the threshold ")[1].split(";")[0]
    others = session(NOISY, pairs=10, seed=4)
    assert gate_result(*others, Policy().with_thresholds([expression])).verdict is SuiteVerdict.PASS


@pytest.mark.parametrize(("events", "trials"), [(0, 20), (1, 20), (10, 20), (20, 20), (3, 2000)])
def test_bounds_are_those_of_statsmodels(events: int, trials: int) -> None:
    expected = proportion_confint(events, trials, method="beta")

    assert Rate(events, trials).bounds() == pytest.approx(expected)


def test_nothing_is_known_of_no_trials() -> None:
    assert Rate(0, 0).bounds() == (0.0, 1.0)
    assert Rate(0, 0).value == 0.0
    assert Rate(1, 4).value == 0.25


def test_false_alarms_of_a_quiet_machine_are_rare_and_repeat() -> None:
    runs = arrange(*session([Kernel(f"k{number}", between=0.004) for number in range(12)]))

    found = resample_false_alarms(runs, Policy(), splits=60, seed=1)

    assert (found.trials, found.events) == (60, 0)
    assert found == resample_false_alarms(runs, Policy(), splits=60, seed=1)


def test_sides_that_differ_fail_in_some_splits() -> None:
    slower = arrange(*session([Kernel(f"k{n}", between=0.001, slower=0.2) for n in range(12)]))

    assert resample_false_alarms(slower, Policy(), splits=400).events

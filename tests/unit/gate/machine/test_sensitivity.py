from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from fakes.gated import SECOND_NS, Kernel, profile_of_times, session
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.run import Run
from proton_bench.gate.judge.judgement import judge
from proton_bench.gate.judge.questions import Context
from proton_bench.gate.judge.result import GateResult
from proton_bench.gate.judge.verdict import Reason, SuiteVerdict
from proton_bench.gate.machine.sensitivity import (
    Sensitivity,
    advice,
    is_of_launches,
    sensitivity_of,
)
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.policy.threshold import parse_threshold
from proton_bench.gate.statistics.evidence import Background, contrast_of, weigh

PATHS = 20
ORDER = [1.0, -1.0] * 5


def seen(
    deviations: np.ndarray, *, shares: np.ndarray | None = None, pairs: int = 10
) -> Sensitivity:
    """Return the sensitivity for paths whose pairs have these standard deviations."""
    rng = np.random.default_rng(5)
    count = len(deviations)
    base, new = rng.normal(0.0, deviations / math.sqrt(2.0), (2, len(ORDER), count))
    nothing = Background(np.zeros(count), np.zeros(count), ["median"] * count)
    evidence = weigh(contrast_of(base, new, ORDER), nothing, fewest_runs=4)
    totals = np.exp(base).sum(axis=1), np.exp(new).sum(axis=1)
    return sensitivity_of(
        "median",
        evidence,
        np.full(count, 1.0 / count) if shares is None else shares,
        totals=totals,
        order=ORDER,
        pairs=pairs,
    )


@given(st.sampled_from([0.005, 0.01, 0.02]), st.integers(6, 30))
def test_more_pairs_and_less_noise_see_more(deviation: float, pairs: int) -> None:
    noise = np.full(PATHS, deviation)

    assert seen(noise, pairs=pairs + 2).path < seen(noise, pairs=pairs).path
    assert seen(noise, pairs=pairs).path < seen(2.0 * noise, pairs=pairs).path
    assert seen(noise, pairs=pairs).run < seen(2.0 * noise, pairs=pairs).run


def test_paths_that_may_stay_undecided_do_not_count() -> None:
    noise = np.full(PATHS, 0.01)
    noisy = np.array([0.5, *noise[1:]])
    small, large = np.full(PATHS, 1.0), np.full(PATHS, 1.0)
    small[0], large[0] = 0.5, 2.0

    held = seen(noise).path
    assert seen(noisy, shares=small / small.sum()).path < 2.0 * held
    assert seen(noisy, shares=large / large.sum()).path > 5.0 * held


def test_the_whole_run_averages_the_noise_of_its_paths() -> None:
    found = seen(np.full(PATHS, 0.02))

    assert found.run < 0.7 * found.path


@pytest.mark.parametrize(
    ("metric", "is_one"),
    [("median", True), ("p25", True), ("p99.9", True), ("total", False), ("calls", False)],
)
def test_only_times_of_launches_have_others_in_their_place(metric: str, is_one: bool) -> None:
    assert is_of_launches(metric) is is_one


@pytest.mark.parametrize(
    ("by_min", "threshold"),
    [(0.039, "min:4%"), (0.041, "min:5%"), (0.0001, "min:0.5%"), (0.09, "median:12%")],
)
def test_the_best_statistic_is_advised_if_it_is_much_better(by_min: float, threshold: str) -> None:
    said = advice("median", [Sensitivity("median", 0.11, 0.07), Sensitivity("min", by_min, 0.02)])

    assert f"-t '{threshold}'" in said
    assert parse_threshold(threshold).ratio is not None


@pytest.mark.parametrize(
    "of_statistics",
    [
        [],
        [Sensitivity("min", 0.04, 0.02)],
        [Sensitivity("median", math.inf, math.nan), Sensitivity("min", math.inf, math.nan)],
    ],
)
def test_without_known_noise_there_is_no_advice(of_statistics: list[Sensitivity]) -> None:
    assert advice("median", of_statistics) == ""


def test_noise_beyond_use_advises_no_threshold() -> None:
    said = advice("median", [Sensitivity("median", 1.5, math.nan)])

    assert said
    assert "-t" not in said


# -- in a gate -----------------------------------------------------------------------------------
NOISY = [Kernel(f"f/k{number}", between=0.03) for number in range(PATHS)]


def runs_with_quiet_moments(pairs: int) -> tuple[list[Run], list[Run]]:
    """Return runs in turn of which each is slower by a random amount, but for some launches."""
    rng = np.random.default_rng(7)
    sides: tuple[list[Run], list[Run]] = ([], [])
    for at in range(2 * pairs):
        load = rng.normal(0.3, 0.1)
        times = {
            f"f/k{path}": 1e5 * np.exp(rng.normal([0.0] * 5 + [load] * 15, 0.002))
            for path in range(PATHS)
        }
        span = {"start_time_ns": at * SECOND_NS, "end_time_ns": at * SECOND_NS + SECOND_NS // 2}
        sides[at % 4 in {1, 2}].append(Run(profile_of_times(times, provenance=span), f"{at}"))
    return sides


def texts(result: GateResult) -> list[str]:
    return [note.text for note in result.notes if note.reason is Reason.TOO_NOISY]


def test_an_inconclusive_gate_says_what_can_be_held() -> None:
    result = judge(*session(NOISY, pairs=6), Policy())

    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    (said,) = texts(result)
    assert "by median" in said


def test_a_statistic_of_quiet_moments_is_advised() -> None:
    runs = runs_with_quiet_moments(6)
    result = judge(*runs, Policy())
    (said,) = texts(result)

    expression = said.split("-t '")[1].split("'")[0]
    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    assert expression.startswith("min:")
    assert judge(*runs, Policy().with_thresholds([expression])).verdict is SuiteVerdict.PASS


def test_the_advice_changes_no_row_and_no_verdict() -> None:
    runs = session(NOISY, pairs=6)

    few, many = (judge(*runs, Policy(), context=Context(pairs=pairs)) for pairs in (0, 30))

    assert few.rows == many.rows
    assert few.verdict is many.verdict
    assert texts(few) != texts(many)


@pytest.mark.parametrize(
    ("noise", "threshold"), [(0.002, "median:3%"), (0.03, "total:3%"), (0.03, "median:200%")]
)
def test_without_hidden_launch_times_nothing_is_advised(noise: float, threshold: str) -> None:
    kernels = [dataclasses.replace(each, between=noise) for each in NOISY]

    result = judge(*session(kernels, pairs=6), Policy().with_thresholds([threshold]))

    assert texts(result) == []


def test_unchanged_code_passes_by_the_advised_threshold() -> None:
    runs = session(NOISY, pairs=10, seed=3)
    (said,) = texts(judge(*runs, Policy()))

    expression = said.split("-t '")[1].split("'")[0]
    others = session(NOISY, pairs=10, seed=4)
    assert judge(*others, Policy().with_thresholds([expression])).verdict is SuiteVerdict.PASS

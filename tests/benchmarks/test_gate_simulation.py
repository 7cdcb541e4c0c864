"""Gates on simulated machines; seeded, so that none is left to luck."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import how_many

from benchmarks.studies.gate.machine import Machine, Program
from benchmarks.studies.gate.rules import (
    in_looks,
    judged,
    mann_whitney,
    median_over_5,
    ours,
    ours_with_canary,
    subtraction,
)
from benchmarks.studies.gate.simulation import MODELS, Outcome, Scenario, simulate
from benchmarks.studies.gate.variants import VARIANTS
from proton_bench.gate.statistics.power import RECOMMENDED_PAIRS

# Without a change one gate in a thousand may fail: two of 100 have a chance of half a percent.
GATES = how_many(400, 100)


def outcome(model: str, runs: int = 6, *, gates: int = 40, **program: float) -> Outcome:
    machine, slowed = MODELS[model], Program(**{"paths": 60, **program})  # type: ignore[arg-type]
    return simulate(Scenario(model, runs, machine, slowed), gates=gates, seed=7)


@pytest.mark.nightly(keep=14)
@pytest.mark.parametrize("paths", [1, 3, 60])
@pytest.mark.parametrize("runs", [4, 6, 9, 10])
@pytest.mark.parametrize("model", MODELS)
def test_identical_programs_hardly_ever_fail(model: str, runs: int, paths: int) -> None:
    found = outcome(model, runs, gates=GATES, paths=paths)

    assert found.alarms.events <= 1


def test_the_guard_against_states_is_what_keeps_them_from_failing() -> None:
    scenario = Scenario("states", 4, MODELS["two states on 20 % of paths"], Program(60))
    bare = Scenario(
        "bare",
        4,
        scenario.machine,
        scenario.program,
        VARIANTS["ours without the guard against states"],
    )

    assert simulate(bare, gates=200, seed=3).alarms.events > 1
    assert simulate(scenario, gates=200, seed=3).alarms.events == 0


@pytest.mark.parametrize("model", ["H200", "5 % of paths noisy, 2 to 10 %", "drift of 2.5 % a run"])
def test_six_pairs_find_the_threshold_on_a_gpu(model: str) -> None:
    found = [
        outcome(model, slowed=6, slowdown=slowdown).found.value
        for slowdown in (0.01, 0.03, 0.05, 0.10)
    ]

    assert found[0] == 0.0
    assert found[1] >= 0.8
    assert found[2:] == pytest.approx([1.0, 1.0], abs=0.02)


def test_more_pairs_find_more() -> None:
    found = [
        outcome("quiet GPU: 0.3 %", runs, slowed=6, slowdown=0.03).found.value
        for runs in (RECOMMENDED_PAIRS - 1, 6, 8, 10)
    ]

    assert found[0] == 0.0
    assert found == sorted(found)
    assert found[3] > found[1] + 0.1


def test_with_many_pairs_less_than_the_threshold_passes_and_more_does_not() -> None:
    less, more = (
        outcome("quiet GPU: 0.3 %", 40, gates=10, slowed=6, slowdown=slowdown).found.value
        for slowdown in (0.025, 0.035)
    )

    assert (less, more) == (0.0, 1.0)


# More than a twentieth of the paths may be noisy: that gate is inconclusive, and more pairs help.
@pytest.mark.parametrize(("model", "fewest"), [("H200", 28), ("5 % of paths noisy, 2 to 10 %", 18)])
def test_most_gates_of_unchanged_code_end_after_four_pairs(model: str, fewest: int) -> None:
    generator = np.random.default_rng(5)
    lengths = [in_looks(MODELS[model].draw(Program(60), 10, generator))[1] for _ in range(30)]

    assert lengths.count(4) >= fewest


def test_pairs_are_added_until_a_slowdown_is_found() -> None:
    generator = np.random.default_rng(6)
    drawn = [MODELS["H200"].draw(Program(60, 6, 0.05), 10, generator) for _ in range(20)]
    last = [in_looks(each) for each in drawn]

    assert {pairs for _, pairs in last} <= {6, 8}
    assert all(found.worse[each.slowed].all() for (found, _), each in zip(last, drawn, strict=True))


@pytest.mark.parametrize("times", [1, 3, 5])
def test_stored_noise_that_is_out_of_date_does_no_harm(times: int) -> None:
    generator = np.random.default_rng(9)
    machine = Machine(own=(0.01 * times,))
    drawn = [machine.draw(Program(60), 6, generator) for _ in range(50)]

    assert not any(judged(each, stored=0.01).worse.any() for each in drawn)


@pytest.mark.parametrize("rule", [ours, ours_with_canary])
@pytest.mark.parametrize("paths", [1, 60])
def test_shifts_since_a_stored_base_rarely_fail(rule: object, paths: int) -> None:
    machine = Machine(session=0.015, apart=True)
    scenario = Scenario("apart", 6, machine, Program(paths), rule)  # type: ignore[arg-type]

    assert simulate(scenario, gates=GATES, seed=3).alarms.events <= 1


def test_the_same_side_always_first_decides_nothing() -> None:
    machine = Machine(drift=0.025, alternating=False)

    assert not simulate(Scenario("first", machine=machine), gates=20, seed=3).alarms.events


def test_other_rules_on_the_same_launches() -> None:
    program = Program(60, launches=25)
    alarms = {
        rule: simulate(
            Scenario("x", 6, Machine(noisy=0.05), program, rule), gates=30, seed=3
        ).alarms.value
        for rule in (median_over_5, mann_whitney, subtraction, ours)
    }

    assert alarms[mann_whitney] > 0.9
    assert min(alarms[subtraction], alarms[median_over_5]) > 0.2
    assert alarms[ours] == 0.0


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_judges_and_finds_a_large_change(name: str) -> None:
    scenario = Scenario(name, 6, MODELS["H200"], Program(24, 2, 0.2), VARIANTS[name])

    found = simulate(scenario, gates=5, seed=1)

    # The signs of six pairs cannot be surer than 1 in 64.
    assert found.found.value == (0.0 if name == "sign flips of pairs" else 1.0)


def test_the_same_seed_makes_the_same_gates() -> None:
    scenario = Scenario("usual", program=Program(30))

    assert simulate(scenario, gates=5, seed=1) == simulate(scenario, gates=5, seed=1)

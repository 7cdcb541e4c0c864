"""Gates on simulated machines; seeded, so that none is left to luck."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import how_many

from benchmarks.studies.gate.machine import Machine, Program
from benchmarks.studies.gate.rules import (
    in_looks,
    judged,
    ours,
)
from benchmarks.studies.gate.simulation import MODELS, Outcome, Scenario, by_judge, simulate
from proton_bench.gate.statistics.decision import FEWEST_PAIRS_TO_FAIL

# Without a change one gate in a thousand may fail: two of 100 have a chance of half a percent.
GATES = how_many(400, 100)


def outcome(model: str, runs: int = 6, *, gates: int = 40, **program: float) -> Outcome:
    machine, slowed = MODELS[model], Program(**{"paths": 60, **program})  # type: ignore[arg-type]
    return simulate(Scenario(model, runs, machine, slowed), gates=gates, seed=7)


@pytest.mark.nightly(keep=8)
@pytest.mark.parametrize("paths", [1, 3, 60])
@pytest.mark.parametrize("runs", [4, 6, 9, 10])
@pytest.mark.parametrize("model", MODELS)
def test_identical_programs_hardly_ever_fail(model: str, runs: int, paths: int) -> None:
    found = outcome(model, runs, gates=GATES, paths=paths)

    assert found.alarms.events <= 1


@pytest.mark.parametrize("model", ["H200", "5 % of paths noisy, 2 to 10 %", "drift of 2.5 % a run"])
def test_six_pairs_find_the_threshold_on_a_gpu(model: str) -> None:
    found = [
        outcome(model, slowed=6, slowdown=slowdown).found.value
        for slowdown in (0.01, 0.03, 0.05, 0.10)
    ]

    assert found[0] == 0.0
    assert found[1] >= 0.75
    assert found[2:] == pytest.approx([1.0, 1.0], abs=0.03)


@pytest.mark.parametrize("slowdown", [0.05, 0.1])
def test_few_launches_of_which_some_are_late_find_as_much(slowdown: float) -> None:
    found = outcome("H200", gates=15, slowed=1, slowdown=slowdown, launches=20)

    assert (found.alarms.events, found.found.value) == (0, pytest.approx(1.0, abs=0.1))


def test_a_change_is_found_where_half_of_the_paths_are_noisy() -> None:
    found = outcome("half of the paths noisy", slowed=6, slowdown=0.1)

    assert found.alarms.events == 0
    assert found.found.value > 0.8


def test_more_pairs_find_more() -> None:
    found = [
        outcome("quiet GPU: 0.3 %", runs, slowed=6, slowdown=0.03).found.value
        for runs in (FEWEST_PAIRS_TO_FAIL - 1, 6, 8, 10)
    ]

    assert found[0] == 0.0
    assert found == sorted(found)
    assert found[3] > found[1] + 0.1


def test_with_many_pairs_less_than_the_threshold_passes_and_more_does_not() -> None:
    less, more = (
        outcome("quiet GPU: 0.3 %", 40, gates=10, slowed=6, slowdown=slowdown).found.value
        for slowdown in (0.025, 0.035)
    )

    assert less < 0.05  # a tick of the timer may be more than what is missing
    assert more > 0.95


# More than a twentieth of the paths may be noisy: that gate is inconclusive, and more pairs help.
@pytest.mark.parametrize(("model", "fewest"), [("H200", 28), ("5 % of paths noisy, 2 to 10 %", 15)])
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


@pytest.mark.parametrize("paths", [1, 60])
def test_shifts_since_a_stored_base_rarely_fail(paths: int) -> None:
    machine = Machine(session=0.015, apart=True)
    scenario = Scenario("apart", 6, machine, Program(paths))

    assert simulate(scenario, gates=GATES, seed=3).alarms.events <= 1


def test_the_same_side_always_first_decides_nothing() -> None:
    machine = Machine(drift=0.025, alternating=False)

    assert not simulate(Scenario("first", machine=machine), gates=20, seed=3).alarms.events


@pytest.mark.parametrize("slowdown", [0.0, 0.12])
def test_the_simulation_decides_as_the_whole_judge(slowdown: float) -> None:
    generator = np.random.default_rng(2)
    program = Program(16, slowed=int(slowdown > 0.0), slowdown=slowdown, launches=20)
    drawn = [MODELS["H200"].draw(program, 6, generator) for _ in range(3)]

    for each in drawn:
        paths = slice(len(each.slowed))
        assert by_judge(each)[paths].tolist() == judged(each).worse[paths].tolist()


@pytest.mark.parametrize(
    "model", ["two clocks, +6 %, half of the paths", "busy CPU: 0.8 %, shared 3 % unevenly"]
)
@pytest.mark.parametrize("slowdown", [0.0, 0.03, 0.1])
def test_gates_that_are_seen_to_pass_need_no_decision(model: str, slowdown: float) -> None:
    generator = np.random.default_rng(9)
    program = Program(30, slowed=2, slowdown=slowdown, launches=20)

    for _ in range(5):
        drawn = MODELS[model].draw(program, 6, generator)
        assert ours(drawn).tolist()[:30] == judged(drawn).worse.tolist()[:30]


def test_the_same_seed_makes_the_same_gates() -> None:
    scenario = Scenario("usual", program=Program(30))

    assert simulate(scenario, gates=5, seed=1) == simulate(scenario, gates=5, seed=1)

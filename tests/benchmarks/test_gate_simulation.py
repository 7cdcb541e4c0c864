"""Gates on a made-up machine, over two thousand in all; seeded, so that none is left to luck."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.studies.gate.machine import Machine, Program
from benchmarks.studies.gate.rules import (
    mann_whitney,
    median_over_5,
    ours,
    ours_with_canary,
    screened_then_confirmed,
    subtraction,
)
from benchmarks.studies.gate.simulation import Outcome, Scenario, simulate

SMALL = Program(paths=60, launches=25)
USUAL = Scenario("usual", program=SMALL)


def outcome(scenario: Scenario, gates: int, **program: float) -> Outcome:
    changed = replace(scenario, program=replace(scenario.program, **program))
    return simulate(changed, gates=gates, seed=7)


@pytest.mark.nightly(keep=5)
@pytest.mark.parametrize(
    "scenario",
    [
        USUAL,
        replace(USUAL, runs=4),
        replace(USUAL, runs=5),
        replace(USUAL, program=replace(SMALL, noisy_share=0.0)),
        replace(USUAL, program=replace(SMALL, noisy_share=0.3)),
        replace(USUAL, program=replace(SMALL, paths=1)),
        replace(USUAL, program=replace(SMALL, paths=4, noisy_share=0.5)),
        replace(USUAL, machine=Machine(tail=3)),
        replace(USUAL, machine=Machine(order=0.02)),
        replace(USUAL, machine=Machine(drift=0.025)),
        replace(USUAL, runs=4, machine=Machine(pair=0.1)),
        replace(USUAL, runs=4, machine=Machine(pair=0.2)),
        replace(USUAL, machine=Machine(pair=0.2)),
        replace(USUAL, runs=9, rule=screened_then_confirmed),
    ],
)
def test_identical_programs_rarely_fail(scenario: Scenario) -> None:
    found = simulate(scenario, gates=200, seed=3)

    # The false discovery rate allows 5 % of gates without any change; margins make it fewer.
    assert found.alarms.trials == 200
    assert found.alarms.value <= 0.05


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    "scenario",
    [
        replace(USUAL, machine=Machine(apart=True)),
        replace(USUAL, machine=Machine(apart=True), rule=ours_with_canary),
        replace(USUAL, machine=Machine(apart=True), program=replace(SMALL, paths=1)),
        replace(USUAL, machine=Machine(drift=0.025, alternating=False)),
    ],
)
def test_shifts_of_the_machine_rarely_fail(scenario: Scenario) -> None:
    assert simulate(scenario, gates=200, seed=3).alarms.value <= 0.05


def test_slowdowns_are_found_the_larger_the_more_surely() -> None:
    found = [
        outcome(USUAL, 60, slowed=6, slowdown=slowdown).found.value
        for slowdown in (0.01, 0.02, 0.03, 0.05, 0.10)
    ]

    assert found == sorted(found)
    assert found[0] <= 0.01
    assert found[1] <= 0.05
    assert found[3] >= 0.85
    assert found[4] >= 0.97


def test_more_pairs_find_more() -> None:
    found = [
        outcome(replace(USUAL, runs=runs), 60, slowed=6, slowdown=0.04).found.value
        for runs in (4, 6, 10)
    ]

    assert found == sorted(found)
    assert found[2] > found[0] + 0.1


def test_two_stages_find_what_one_does() -> None:
    two = replace(USUAL, runs=9, rule=screened_then_confirmed)

    assert outcome(two, 60, slowed=6, slowdown=0.05).found.value >= 0.85


def test_other_rules_on_the_same_launches() -> None:
    alarms = {
        rule: simulate(replace(USUAL, rule=rule), gates=60, seed=3).alarms.value
        for rule in (median_over_5, mann_whitney, subtraction, ours)
    }

    assert alarms[mann_whitney] > 0.9
    assert alarms[subtraction] > 0.5
    assert alarms[median_over_5] > 0.2
    assert alarms[ours] < min(alarms[rule] for rule in (median_over_5, mann_whitney, subtraction))


def test_the_same_seed_makes_the_same_gates() -> None:
    assert simulate(USUAL, gates=5, seed=1) == simulate(USUAL, gates=5, seed=1)

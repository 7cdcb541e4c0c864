"""How often rules raise false alarms and find slowdowns, on a simulated machine.

Everything printed is a simulation: the spreads are inputs (`machine.py`), not measurements, and the
same authors made the rule and the model. ``python -m benchmarks.studies.gate.simulation``, from the
top folder; minutes. Seeded: the same command prints the same tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.studies.gate.machine import Machine, Program
from benchmarks.studies.gate.rules import (
    RULES,
    Rule,
    ours,
    ours_with_canary,
    screened_then_confirmed,
)
from proton_bench.gate.statistics.rate import Rate

__all__ = ["SCENARIOS", "SLOWDOWNS", "Outcome", "Scenario", "simulate"]

SLOWDOWNS = (0.01, 0.02, 0.03, 0.05, 0.10)
_SLOWED = 6


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of experiment.

    Attributes:
        name: Its peculiarity.
        runs: Runs of each side.
        machine: How they differ.
        program: What runs, without a slowdown.
        rule: What judges.
    """

    name: str
    runs: int = 6
    machine: Machine = field(default_factory=Machine)
    program: Program = field(default_factory=Program)
    rule: Rule = ours


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a rule over many gates.

    Attributes:
        alarms: Gates in which a path was called slower that was not.
        found: Slowed paths that were found.
    """

    alarms: Rate
    found: Rate


QUIET = Program(noisy_share=0.0)
SCENARIOS = (
    Scenario("6 pairs"),
    Scenario("4 pairs", runs=4),
    Scenario("5 pairs", runs=5),
    Scenario("8 pairs", runs=8),
    Scenario("6 pairs, no noisy paths", program=QUIET),
    Scenario("6 pairs, 8 paths, one of three noisy", program=Program(8, 0.33)),
    Scenario("6 pairs, spread between processes of t with 3 degrees", machine=Machine(tail=3)),
    Scenario("6 pairs, running second costs 1 %", machine=Machine(order=0.01)),
    Scenario("6 pairs, drift of 1 % a run", machine=Machine(drift=0.01)),
    Scenario("6 pairs, drift of 2.5 % a run", machine=Machine(drift=0.025)),
    Scenario(
        "4 pairs, 60 paths, all of a run slower or faster by 10 %",
        runs=4,
        machine=Machine(pair=0.1),
        program=Program(60),
    ),
    Scenario(
        "6 pairs, 60 paths, all of a run slower or faster by 20 %",
        machine=Machine(pair=0.2),
        program=Program(60),
    ),
    Scenario(
        "6 pairs, drift of 2.5 % a run, the base always first",
        machine=Machine(drift=0.025, alternating=False),
    ),
    Scenario("two stages: 3 pairs, then 6 of what was flagged", 9, rule=screened_then_confirmed),
    Scenario("stored base, 6 runs each", machine=Machine(apart=True)),
    Scenario("the same with a canary", machine=Machine(apart=True), rule=ours_with_canary),
)


def simulate(scenario: Scenario, *, gates: int, seed: int) -> Outcome:
    """Judge simulated experiments; the same seed gives every rule the same ones."""
    generator = np.random.default_rng(seed)
    alarms = found = slowed = 0
    for _ in range(gates):
        drawn = scenario.machine.draw(scenario.program, scenario.runs, generator)
        called = scenario.rule(drawn)
        alarms += bool((called & ~drawn.slowed).any())
        found += int((called & drawn.slowed).sum())
        slowed += int(drawn.slowed.sum())
    return Outcome(Rate(alarms, gates), Rate(found, slowed))


def main() -> None:
    """Print all tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=1000, help="gates of each line")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    print_rules(chosen.gates, chosen.seed)
    print_scenarios(chosen.gates, chosen.seed)


def print_rules(gates: int, seed: int) -> None:
    """Print all rules on identical launches, with and without noisy paths."""
    for title, program in (("5 % of the paths noisy", Program()), ("no noisy path", QUIET)):
        scenario = Scenario("6 pairs", program=program)
        print(f"\nRules on identical data, {title}:\n")
        _print_table(
            "rule",
            (
                (name, _line(replace(scenario, rule=rule), gates=gates, seed=seed))
                for name, rule in RULES.items()
            ),
        )


def print_scenarios(gates: int, seed: int) -> None:
    """Print this gate in all kinds of experiments."""
    print("\nOurs:\n")
    lines = ((each.name, _line(each, gates=gates, seed=seed)) for each in SCENARIOS)
    _print_table("experiment", lines)


def _line(scenario: Scenario, *, gates: int, seed: int) -> list[str]:
    """Return false alarms without any change, and the found share of each slowdown."""
    without = simulate(scenario, gates=gates, seed=seed)
    low, high = without.alarms.bounds()
    cells = [f"{without.alarms.value:.1%} [{low:.1%}, {high:.1%}]"]
    for number, slowdown in enumerate(SLOWDOWNS):
        program = replace(
            scenario.program, slowed=min(_SLOWED, scenario.program.paths // 4), slowdown=slowdown
        )
        changed = replace(scenario, program=program)
        found = simulate(changed, gates=max(gates // 5, 1), seed=seed + 1 + number)
        cells.append(f"{found.found.value:.0%}")
    return cells


def _print_table(first: str, lines: Iterable[tuple[str, list[str]]]) -> None:
    """Print each line as soon as it is known."""
    heads = [first, "false alarms", *(f"+{slowdown:.0%}" for slowdown in SLOWDOWNS)]
    print(f"| {' | '.join(heads)} |")
    print(f"|{'---|' * len(heads)}")
    for name, cells in lines:
        print(f"| {' | '.join([name, *cells])} |", flush=True)


if __name__ == "__main__":
    main()

"""How often rules raise false alarms and find slowdowns, on simulated machines.

Everything printed is a simulation: the spreads are inputs (`machine.py`), partly measured ones, and
the same authors made the rule and the models. ``python -m benchmarks.studies.gate.simulation``,
from the top folder; half an hour. Seeded: the same command prints the same tables.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from benchmarks.studies.gate.machine import Drawn, Machine, Program
from benchmarks.studies.gate.rules import (
    OTHER_TOOLS,
    Rule,
    in_looks,
    judged,
    ours,
    ours_with_canary,
)
from benchmarks.studies.gate.variants import VARIANTS
from proton_bench.gate.experiment.looks import MOST_PAIRS
from proton_bench.gate.machine.rate import Rate

__all__ = ["MODELS", "SLOWDOWNS", "Outcome", "Scenario", "simulate"]

SLOWDOWNS = (0.02, 0.03, 0.05, 0.10)
_SLOWED = 6
_CPU = Machine(own=(0.1,), varied=0.3, pair=0.1)

# Machines that the gate is made for. All but the last ones have the spreads of an H200.
MODELS: dict[str, Machine] = {
    "H200": Machine(),
    "quiet GPU: 0.3 %": Machine(own=(0.003,), varied=0.5),
    "5 % of paths noisy, 2 to 10 %": Machine(noisy=0.05),
    "30 % of paths noisy": Machine(noisy=0.3),
    "two states on 20 % of paths": Machine(states=0.2),
    "slow state of 30 % on 20 % of paths": Machine(states=0.2, chance=0.3),
    "rare slow state, +10 %, p = 0.1, all paths": Machine(states=1.0, chance=0.1, state=0.1),
    "heavy tails: t with 3 degrees": Machine(own=(0.003,), varied=0.5, tail=3),
    "drift of 2.5 % a run": Machine(drift=0.025),
    "running second costs 1 %": Machine(order=0.01),
    "AR(1) of 2 %": Machine(wandering=0.02),
    "shared 15 %": Machine(own=(0.004,), varied=0.5, pair=0.15),
    "CPU: own 10 % and shared 10 %": _CPU,
    "quiet CPU: 1.5 %, shared 0.5 %, 5 % noisy": Machine(
        own=(0.015,), varied=0.5, pair=0.005, noisy=0.05
    ),
    "busy CPU: 0.8 %, shared 3 % unevenly": Machine(
        own=(0.008,), varied=0.5, pair=0.03, uneven=0.5
    ),
}


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


# -- tables --------------------------------------------------------------------------------------
def main() -> None:
    """Print the chosen tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*_TABLES, []], help="all by default")
    parser.add_argument("--gates", type=int, default=3000, help="unchanged gates of 100 paths")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    for name in chosen.tables or _TABLES:
        _TABLES[name](chosen.gates, chosen.seed)


def print_models(gates: int, seed: int, *, all_paths: Sequence[int] = (100, 20, 3, 1000)) -> None:
    """Print the gate on every model, for several numbers of paths and pairs.

    Four pairs never fail a path: each cell would be 0.
    """
    for paths in all_paths:
        for runs in (6, 10):
            print(f"\n{paths} paths, {runs} pairs:\n")
            lines = [
                Scenario(name, runs, machine, Program(paths)) for name, machine in MODELS.items()
            ]
            _print_scenarios(lines, gates=_fewer(gates, paths), seed=seed, first="machine")


def print_thousands(gates: int, seed: int) -> None:
    """Print the same for 3 000 paths."""
    print_models(gates, seed, all_paths=(3000,))


def print_nine(gates: int, seed: int) -> None:
    """Print false alarms where they are most frequent: few paths that share noise unevenly."""
    print("\n9 paths, 6 pairs:\n")
    _print_heads(["machine", "gates", "false alarms"])
    name = "busy CPU: 0.8 %, shared 3 % unevenly"
    found = simulate(Scenario(name, 6, MODELS[name], Program(9)), gates=gates, seed=seed).alarms
    print(f"| {name} | {gates} | {_rate_text(found)} |")


def print_variants(gates: int, seed: int) -> None:
    """Print other statistics on identical data."""
    for name in (
        "H200",
        "5 % of paths noisy, 2 to 10 %",
        "two states on 20 % of paths",
        "rare slow state, +10 %, p = 0.1, all paths",
        "shared 15 %",
        "CPU: own 10 % and shared 10 %",
    ):
        print(f"\n{name}, 100 paths, 6 pairs:\n")
        lines = [Scenario(each, machine=MODELS[name], rule=rule) for each, rule in VARIANTS.items()]
        _print_scenarios(lines, gates=gates, seed=seed, first="rule")


def print_tools(gates: int, seed: int) -> None:
    """Print rules of other tools on identical launches."""
    for name in ("H200", "5 % of paths noisy, 2 to 10 %"):
        print(f"\nRules on identical launches, {name}, 100 paths, 6 pairs:\n")
        rules = {**OTHER_TOOLS, "ours": ours}
        lines = [
            Scenario(each, machine=MODELS[name], program=Program(launches=100), rule=rule)
            for each, rule in rules.items()
        ]
        _print_scenarios(lines, gates=max(gates // 10, 1), seed=seed, first="rule")


def print_others(gates: int, seed: int) -> None:
    """Print experiments that are not pairs in turn, and stored noise that is out of date."""
    print("\n100 paths:\n")
    quiet, apart = MODELS["quiet GPU: 0.3 %"], Machine(session=0.015, apart=True)
    lines = [
        Scenario(
            f"6 pairs, {times} times the stored noise of 1 %",
            machine=Machine(own=(0.01 * times,)),
            rule=_with_stored,
        )
        for times in (1, 2, 3, 5)
    ]
    lines += [
        Scenario(
            "drift, the base always first", machine=replace(quiet, drift=0.025, alternating=False)
        ),
        Scenario("stored base, 6 runs each", machine=apart),
        Scenario("stored base, 6 runs each, with a canary", machine=apart, rule=ours_with_canary),
    ]
    _print_scenarios(lines, gates=gates, seed=seed, first="experiment")


def print_majorities(gates: int, seed: int) -> None:
    """Print how often unchanged paths are called slower because most paths got faster."""
    print("\n100 paths, of which 60 are 10 % faster, 6 pairs:\n")
    _print_heads(["machine", "false alarms"])
    program = Program(slowed=60, slowdown=-0.1)
    for name in ("H200", "busy CPU: 0.8 %, shared 3 % unevenly", "shared 15 %"):
        scenario = Scenario(name, machine=MODELS[name], program=program)
        alarms = simulate(scenario, gates=gates, seed=seed).alarms
        print(f"| {name} | {_rate_text(alarms)} |", flush=True)


def print_looks(gates: int, seed: int) -> None:
    """Print pairs that are added until every path is decided."""
    print(f"\nAt most {MOST_PAIRS} pairs, 100 paths:\n")
    found = [f"+{each:.0%} found, pairs" for each in SLOWDOWNS]
    heads = ["machine", "false alarms", "4 pairs", "pairs", *found, "+3% called the same"]
    _print_heads(heads)
    for name, machine in MODELS.items():
        same = _watch(machine, Program(), gates=gates, seed=seed)
        cells = [_rate_text(same.alarms), f"{same.lengths[4] / gates:.0%}", f"{same.pairs:.1f}"]
        missed = ""
        for number, slowdown in enumerate(SLOWDOWNS):
            program = Program(slowed=_SLOWED, slowdown=slowdown)
            seen = _watch(machine, program, gates=max(gates // 20, 5), seed=seed + 1 + number)
            cells.append(f"{seen.found.value:.0%}, {seen.pairs:.1f}")
            missed = f"{seen.missed.value:.1%}" if slowdown == 0.03 else missed
        print(f"| {' | '.join([name, *cells, missed])} |", flush=True)


@dataclass(frozen=True, slots=True)
class _Watched:
    """Experiments that add pairs: gates with alarms, slowed paths found or called the same."""

    alarms: Rate
    found: Rate
    missed: Rate
    lengths: Counter[int]

    @property
    def pairs(self) -> float:
        """Mean number of pairs."""
        return sum(size * count for size, count in self.lengths.items()) / self.lengths.total()


def _watch(machine: Machine, program: Program, *, gates: int, seed: int) -> _Watched:
    generator = np.random.default_rng(seed)
    alarms = found = missed = slowed = 0
    lengths: Counter[int] = Counter()
    for _ in range(gates):
        drawn = machine.draw(program, MOST_PAIRS, generator)
        last, pairs = in_looks(drawn)
        lengths[pairs] += 1
        alarms += bool((last.worse & ~drawn.slowed).any())
        found += int((last.worse & drawn.slowed).sum())
        missed += int((last.decisions.allowed & drawn.slowed).sum())
        slowed += int(drawn.slowed.sum())
    return _Watched(Rate(alarms, gates), Rate(found, slowed), Rate(missed, slowed), lengths)


def _with_stored(drawn: Drawn) -> npt.NDArray[np.bool_]:
    return judged(drawn, stored=0.01).worse


def _fewer(gates: int, paths: int) -> int:
    """Return fewer gates of other sizes, which take long."""
    if paths > 100:
        return max(gates * 100 // paths, 20)
    return gates if paths >= 20 else max(gates // 3, 20)


def _print_scenarios(scenarios: Iterable[Scenario], *, gates: int, seed: int, first: str) -> None:
    """Print each line as soon as it is known."""
    _print_heads([first, "false alarms", *(f"+{slowdown:.0%}" for slowdown in SLOWDOWNS)])
    for each in scenarios:
        print(f"| {' | '.join([each.name, *_line(each, gates=gates, seed=seed)])} |", flush=True)


def _print_heads(heads: Sequence[str]) -> None:
    print(f"| {' | '.join(heads)} |")
    print(f"|{'---|' * len(heads)}")


def _line(scenario: Scenario, *, gates: int, seed: int) -> list[str]:
    """Return false alarms without any change, and the found share of each slowdown."""
    alarms = simulate(scenario, gates=gates, seed=seed).alarms
    cells = [_rate_text(alarms)]
    for number, slowdown in enumerate(SLOWDOWNS):
        slowed = max(1, min(_SLOWED, scenario.program.paths // 4))
        program = replace(scenario.program, slowed=slowed, slowdown=slowdown)
        changed = replace(scenario, program=program)
        found = simulate(changed, gates=max(gates // 20, 5), seed=seed + 1 + number)
        cells.append(f"{found.found.value:.0%}")
    return cells


def _rate_text(rate: Rate) -> str:
    low, high = rate.bounds()
    return f"{rate.value:.2%} [{low:.2%}, {high:.2%}]"


_TABLES = {
    "models": print_models,
    "thousands": print_thousands,
    "nine": print_nine,
    "variants": print_variants,
    "tools": print_tools,
    "looks": print_looks,
    "others": print_others,
    "majorities": print_majorities,
}


if __name__ == "__main__":
    main()

"""How often the gate raises false alarms and finds slowdowns, on simulated machines.

Everything printed is a simulation: the spreads are inputs (`machine.py`), partly measured ones, and
the same authors made the rule and the models. Seeded: the same command prints the same tables.

``python -m benchmarks.studies.gate.simulation models``: half an hour of a core
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.studies.gate.machine import TICK_NS, Drawn, Machine, Program
from benchmarks.studies.gate.rules import Rule, in_looks, ours
from proton_bench.analysis.run import Run
from proton_bench.gate.experiment import MOST_PAIRS, Rate
from proton_bench.gate.policy import Policy
from proton_bench.gate.statistics.arrangement import paired_as
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.decided_checks import Context
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution

SLOWDOWNS = (0.03, 0.05, 0.10)
_LAUNCHES = 60
_QUIET = (0.003,)

# All but the last ones have the spreads of an H200 between processes.
MODELS: dict[str, Machine] = {
    "H200": Machine(),
    "quiet GPU: 0.3 %": Machine(own=_QUIET, varied=0.5),
    "5 % of paths noisy, 2 to 10 %": Machine(noisy=0.05),
    "30 % of paths noisy": Machine(noisy=0.3),
    "half of the paths noisy": Machine(noisy=0.5),
    "two states on 20 % of paths": Machine(states=0.2),
    "slow state of 30 % on 20 % of paths": Machine(states=0.2, chance=0.3),
    "rare slow state, +10 %, p = 0.1, all paths": Machine(states=1.0, chance=0.1, state=0.1),
    "two clocks, +6 %, half of the paths": Machine(clocks=0.06),
    "load of period four, +-5 %": Machine(load=0.05),
    "heavy tails: t with 3 degrees": Machine(own=_QUIET, varied=0.5, tail=3),
    "heavy tails: t with 2 degrees": Machine(own=_QUIET, varied=0.5, tail=2),
    "drift of 2.5 % a run": Machine(drift=0.025),
    "running second costs 1 %": Machine(order=0.01),
    "warming up, 5 %": Machine(warming=0.05),
    "AR(1) of 2 %": Machine(wandering=0.02),
    "AR(1) of 2 %, correlation 0.95": Machine(wandering=0.02, lasting=0.95),
    "shared 15 %": Machine(own=(0.004,), varied=0.5, pair=0.15),
    "CPU: own 10 % and shared 10 %": Machine(own=(0.1,), varied=0.3, pair=0.1),
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
        alarms: Gates in which a path was called slower that was not; or a total, where nothing was.
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
        paths = called[: len(drawn.slowed)]
        unchanged = not drawn.slowed.any()
        alarms += bool((called if unchanged else paths & ~drawn.slowed).any())
        found += int((paths & drawn.slowed).sum())
        slowed += int(drawn.slowed.sum())
    return Outcome(Rate(alarms, gates), Rate(found, slowed))


# -- the whole judge -----------------------------------------------------------------------------
def by_judge(drawn: Drawn) -> np.ndarray:
    """Judge profiles with these launches by all checks of `proton gate`; for `Scenario.rule`."""
    sides = [_runs(side, word) for side, word in ((drawn.base, "base"), (drawn.new, "new"))]
    runs = paired_as(*sides, [each > 0 for each in drawn.order])
    result = gate_result(*sides, Policy(), context=Context(runs))
    names = {row.path[-1] for row in result.regressions if row.path}
    total = any(row.is_total for row in result.regressions)
    found = [f"k{path}" in names for path in range(len(drawn.slowed))]
    return np.array([*found, total])


def _runs(side: np.ndarray, word: str) -> list[Run]:
    return [Run(_profile(times), f"{word}{at}") for at, times in enumerate(TICK_NS * side)]


def _profile(times: np.ndarray) -> object:
    builder, gpu = ProfileBuilder(), Device("CUDA", 0, "90", 132)
    scopes = [builder.add(0, f"scope{n}", FrameKind.SCOPE) for n in range(4)]
    for path, launches in enumerate(times):
        metrics = {"time (ns)": float(launches.sum()), "count": float(len(launches))}
        row = builder.add(
            scopes[4 * path // len(times)],
            f"k{path}",
            FrameKind.KERNEL,
            metrics=metrics,
            device=gpu,
        )
        builder.set_distribution(row, "time (ns)", Distribution.from_samples(launches))
    ticks = {"collectors": {"cupti": {"devices": [{"tick_ns": TICK_NS}]}}}
    return builder.build(provenance={"host": "here", **ticks})


# -- tables --------------------------------------------------------------------------------------
def main() -> None:
    """Print the chosen tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*_TABLES, []], help="all by default")
    parser.add_argument("--gates", type=int, default=4000, help="unchanged gates of 100 paths")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--launches", type=int, default=_LAUNCHES, help="of a path in a run")
    parser.add_argument("--paths", type=int, default=100)
    chosen = parser.parse_args()
    for name in chosen.tables or _TABLES:
        _TABLES[name](chosen)


def print_models(asked: argparse.Namespace) -> None:
    """Print the decision on every model; one path of those of a program is slower."""
    _print_scenarios(asked, MODELS, ours)


def print_judge(asked: argparse.Namespace) -> None:
    """Print what the whole judge makes of profiles of some models: a second for each gate."""
    names = ("H200", "5 % of paths noisy, 2 to 10 %", "quiet CPU: 1.5 %, shared 0.5 %, 5 % noisy")
    _print_scenarios(asked, {name: MODELS[name] for name in names}, by_judge)


def print_looks(asked: argparse.Namespace) -> None:
    """Print pairs that are added until every path is decided."""
    print(f"\nAt most {MOST_PAIRS} pairs, {asked.paths} paths, {asked.launches} launches:\n")
    found = [f"+{each:.0%} found, pairs" for each in SLOWDOWNS]
    _print_heads(["machine", "false alarms", "4 pairs", "pairs", *found])
    for name, machine in MODELS.items():
        program = Program(asked.paths, launches=asked.launches)
        same, _, lengths = _watch(machine, program, gates=asked.gates, seed=asked.seed)
        cells = [_rate_text(same), f"{lengths[4] / asked.gates:.0%}", f"{_mean(lengths):.1f}"]
        for number, slowdown in enumerate(SLOWDOWNS):
            changed = replace(program, slowed=1, slowdown=slowdown)
            gates, seed = max(asked.gates // 10, 5), asked.seed + 1 + number
            _, seen, lengths = _watch(machine, changed, gates=gates, seed=seed)
            cells.append(f"{seen.value:.0%}, {_mean(lengths):.1f}")
        print(f"| {' | '.join([name, *cells])} |", flush=True)


def _watch(
    machine: Machine, program: Program, *, gates: int, seed: int
) -> tuple[Rate, Rate, Counter[int]]:
    """Return gates with alarms, the slowed paths that were found, and the numbers of pairs."""
    generator = np.random.default_rng(seed)
    alarms = found = 0
    lengths: Counter[int] = Counter()
    for _ in range(gates):
        drawn = machine.draw(program, MOST_PAIRS, generator)
        last, pairs = in_looks(drawn)
        lengths[pairs] += 1
        paths = last.worse[: last.paths]
        unchanged = not drawn.slowed.any()
        alarms += bool((last.worse if unchanged else paths & ~drawn.slowed).any())
        found += int((paths & drawn.slowed).any())
    return Rate(alarms, gates), Rate(found, gates), lengths


def _mean(lengths: Counter[int]) -> float:
    return sum(size * count for size, count in lengths.items()) / lengths.total()


def _print_scenarios(asked: argparse.Namespace, models: dict[str, Machine], rule: Rule) -> None:
    """Print each line as soon as it is known."""
    print(f"\n{asked.paths} paths of {asked.launches} launches, {asked.pairs} pairs:\n")
    _print_heads(["machine", "false alarms", *(f"+{slowdown:.0%}" for slowdown in SLOWDOWNS)])
    program = Program(asked.paths, launches=asked.launches)
    for name, machine in models.items():
        scenario = Scenario(name, asked.pairs, machine, program, rule)
        alarms = simulate(scenario, gates=asked.gates, seed=asked.seed).alarms
        cells = [_rate_text(alarms)]
        for number, slowdown in enumerate(SLOWDOWNS):
            changed = replace(scenario, program=replace(program, slowed=1, slowdown=slowdown))
            gates, seed = max(asked.gates // 10, 5), asked.seed + 1 + number
            cells.append(f"{simulate(changed, gates=gates, seed=seed).found.value:.0%}")
        print(f"| {' | '.join([name, *cells])} |", flush=True)


def _print_heads(heads: Sequence[str]) -> None:
    print(f"| {' | '.join(heads)} |")
    print(f"|{'---|' * len(heads)}")


def _rate_text(rate: Rate) -> str:
    low, high = rate.bounds()
    return f"{rate.events} of {rate.trials} [{low:.2%}, {high:.2%}]"


_TABLES: dict[str, Callable[[argparse.Namespace], None]] = {
    "models": print_models,
    "gate_result": print_judge,
    "looks": print_looks,
}


if __name__ == "__main__":
    main()

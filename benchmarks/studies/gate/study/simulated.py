"""The simulation once more, on a machine with the spreads that a study measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchmarks.studies.gate.machine import Machine, Program
from benchmarks.studies.gate.simulation import Scenario, simulate
from benchmarks.studies.gate.study.components import PathSpread, Shared
from benchmarks.studies.gate.study.plan import SLOWDOWNS
from proton_bench.gate.machine.rate import Rate

__all__ = ["MeasuredMachine", "Simulated", "machine_of", "simulations"]

Numbers = npt.NDArray[np.float64]
# Paths beyond this are not slowed: 5 % cannot be found there.
_NOISY = 0.02
_PATHS = 300


@dataclass(frozen=True, slots=True)
class MeasuredMachine(Machine):
    """A machine whose paths spread as measured ones do.

    Attributes:
        measured: Spread between processes and within one, of each measured path.
    """

    measured: tuple[tuple[float, float], ...] = ()

    def spreads(
        self, program: Program, generator: np.random.Generator
    ) -> tuple[Numbers, Numbers, npt.NDArray[np.bool_]]:
        """Return spreads of paths that are drawn from the measured ones."""
        drawn = generator.integers(0, len(self.measured), program.paths)
        between, within = np.array(self.measured)[drawn].T
        return between, within, between > _NOISY


@dataclass(frozen=True, slots=True)
class Simulated:
    """One line: an experiment, its false alarms without a change, and the slowdowns it found."""

    session: str
    alarms: Rate
    found: dict[float, Rate]


def machine_of(spreads: Sequence[PathSpread], shared: Shared) -> MeasuredMachine:
    """Return the machine that a study measured.

    What all paths share is taken out of the spread of each one.
    """
    common = shared.process if math.isfinite(shared.process) else 0.0
    own = tuple(
        (math.sqrt(max(each.between**2 - common**2, 1e-10)), max(each.within, 1e-5))
        for each in spreads
        if math.isfinite(each.between)
    )
    return MeasuredMachine(
        session=shared.session if math.isfinite(shared.session) else 0.0,
        pair=shared.pair if math.isfinite(shared.pair) else 0.0,
        drift=shared.drift if math.isfinite(shared.drift) else 0.0,
        measured=own,
    )


def simulations(machine: MeasuredMachine, *, gates: int, seed: int) -> list[Simulated]:
    """Simulate gates of several sizes; the same seed gives the same lines."""
    few, many = Program(paths=len(machine.measured)), Program(paths=_PATHS)
    scenarios = [
        Scenario(f"6 pairs, the {few.paths} measured paths", machine=machine, program=few),
        *(Scenario(f"{n} pairs, {_PATHS} paths", n, machine, many) for n in (6, 8, 10)),
        Scenario(
            f"stored base, 6 runs each, {_PATHS} paths",
            machine=replace(machine, apart=True),
            program=many,
        ),
    ]
    return [_line(each, gates, seed) for each in scenarios]


def _line(scenario: Scenario, gates: int, seed: int) -> Simulated:
    alarms = simulate(scenario, gates=gates, seed=seed).alarms
    found = {}
    for number, slowdown in enumerate(SLOWDOWNS):
        program = replace(
            scenario.program,
            slowed=max(1, min(6, scenario.program.paths // 4)),
            slowdown=slowdown,
        )
        changed = replace(scenario, program=program)
        found[slowdown] = simulate(changed, gates=max(gates // 5, 1), seed=seed + 1 + number).found
    return Simulated(scenario.name, alarms, found)

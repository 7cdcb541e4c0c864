"""A simulated machine: how processes and launches of many paths differ from one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Drawn", "Machine", "Program"]

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Program:
    """Paths that run, and those that are slower on the new side.

    Attributes:
        paths: Call paths.
        noisy_share: Part of them that differs by 2 to 10 % from process to process.
        slowed: Number of other paths that are slower on the new side.
        slowdown: By how much, as a part.
        launches: Launches of a path in a process.
    """

    paths: int = 300
    noisy_share: float = 0.05
    slowed: int = 0
    slowdown: float = 0.0
    launches: int = 100


@dataclass(frozen=True, slots=True)
class Machine:
    """Standard deviations of logarithms, unless they say otherwise.

    Attributes:
        between: Median over the paths of the spread between processes.
        within: Median of the spread between launches of a process.
        session: What all paths of both runs of a pair share; of a side if sides are apart.
        pair: What all paths of one of the two runs of a pair share.
        order: What running second in a pair adds.
        drift: What every run adds to the one before.
        tail: Degrees of freedom of a t distribution of the spread between processes, 0 for normal.
        alternating: Whether the sides take turns at going first.
        apart: Whether all base runs came before all new ones, in one block.
    """

    between: float = 0.004
    within: float = 0.015
    session: float = 0.015
    pair: float = 0.003
    order: float = 0.0
    drift: float = 0.0
    tail: int = 0
    alternating: bool = True
    apart: bool = False

    def draw(self, program: Program, runs: int, generator: np.random.Generator) -> Drawn:
        """Return the launches of so many runs on each side."""
        paths = program.paths
        between, within, noisy = self.spreads(program, generator)
        quiet = np.flatnonzero(~noisy)
        slowed = np.zeros(paths, dtype=np.bool_)
        slowed[generator.choice(quiet, min(program.slowed, len(quiet)), replace=False)] = True
        effect = np.where(slowed, np.log1p(program.slowdown), 0.0)
        order = np.array([1.0 if self._base_first(pair) else -1.0 for pair in range(runs)])
        shared = self._shared(order, generator)
        middles = shared[:, :, None] + self._tailed((2, runs, paths), generator) * between
        middles[1] += effect
        spread = generator.normal(0.0, 1.0, (2, runs, paths, program.launches))
        launches = np.exp(middles[..., None] + spread * within[:, None])
        # One launch of a hundred is late by 10 to 100 %.
        late = generator.random(launches.shape) < 0.01
        launches[late] *= 1.0 + generator.uniform(0.1, 1.0, int(late.sum()))
        return Drawn(launches[0], launches[1], np.zeros(0) if self.apart else order, slowed, shared)

    def spreads(
        self, program: Program, generator: np.random.Generator
    ) -> tuple[Numbers, Numbers, Mask]:
        """Return each path's spread between processes and within one, and which are noisy."""
        between = np.exp(generator.normal(np.log(self.between), 0.5, program.paths))
        noisy = generator.random(program.paths) < program.noisy_share
        between[noisy] = generator.uniform(0.02, 0.10, int(noisy.sum()))
        within = np.exp(generator.normal(np.log(self.within), 0.4, program.paths))
        return between, within, noisy

    def _base_first(self, pair: int) -> bool:
        return not self.alternating or pair % 2 == 0

    def _shared(self, order: Numbers, generator: np.random.Generator) -> Numbers:
        """Return what all paths of a run share: one line for each side, one column for each run."""
        runs = len(order)
        own = generator.normal(0.0, self.pair, (2, runs))
        if self.apart:
            slots = np.arange(2 * runs, dtype=np.float64).reshape(2, runs)
            return own + generator.normal(0.0, self.session, (2, 1)) + self.drift * slots
        session = generator.normal(0.0, self.session, runs)
        second = np.stack([order < 0, order > 0]).astype(np.float64)
        slots = 2.0 * np.arange(runs) + second
        return own + session + self.order * second + self.drift * slots

    def _tailed(self, shape: tuple[int, ...], generator: np.random.Generator) -> Numbers:
        if not self.tail:
            return generator.normal(0.0, 1.0, shape)
        scale = np.sqrt(self.tail / (self.tail - 2.0))
        drawn: Numbers = generator.standard_t(self.tail, shape) / scale
        return drawn


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Launches of both sides: runs, then paths, then launches.

    Attributes:
        base: Of the base.
        new: Of the new side.
        order: +1 for each pair in which the base ran first, -1 for others; empty if sides are
            apart.
        slowed: The paths that are slower on the new side.
        shared: What all paths of a run share, as a canary kernel would see it.
    """

    base: Numbers
    new: Numbers
    order: Numbers
    slowed: Mask
    shared: Numbers

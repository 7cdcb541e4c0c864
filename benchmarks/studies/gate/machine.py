"""A simulated machine: how processes and launches of many paths differ from one another."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from proton_bench.gate.slot import Stage, pairs
from proton_bench.model.arrays import Floats, Mask

# Spreads between processes that a study measured: benchmarks/studies/README.md.
H200 = (0.0014, 0.0010, 0.0010, 0.0014, 0.0030, 0.0009, 0.0011, 0.0009)
_NOISY = (0.02, 0.10)
# From 40 to 120 us in ticks of 32 ns, so that each of 100 paths has enough of the time.
TICK_NS = 32.0
_SHORTEST, _LONGEST = math.log(4e4 / TICK_NS), math.log(1.2e5 / TICK_NS)


@dataclass(frozen=True, slots=True)
class Program:
    """Paths that run, and those that are slower on the new side.

    Attributes:
        paths: Call paths.
        slowed: Number of paths that are slower on the new side, quiet ones if there are enough.
        slowdown: By how much, as a part.
        launches: Launches of a path in a process; with 1 there is no spread within processes, and
            no tick of a timer.
    """

    paths: int = 100
    slowed: int = 0
    slowdown: float = 0.0
    launches: int = 1


@dataclass(frozen=True, slots=True)
class Machine:
    """Standard deviations of logarithms, unless they say otherwise.

    Attributes:
        own: Spreads between processes, of which each path has one.
        varied: Spread of the logarithms of these spreads between paths.
        noisy: Part of the paths that differ by 2 to 10 % from process to process.
        within: Median of the spread between launches of a process.
        session: What all paths of both runs of a pair share; of a side if sides are apart.
        pair: What all paths of one of the two runs of a pair share.
        uneven: Spread of the logarithms of how much of what they share each path takes.
        order: What running second in a pair adds.
        drift: What every run adds to the one before.
        wandering: What all paths share from run to run with an autocorrelation (AR(1)).
        lasting: That autocorrelation.
        warming: What all runs are slower by at last, in a few runs' time.
        clocks: By how much half of the paths are slower in every second process, by chance.
        load: Other work slows all paths by so much in two of four runs, and speeds up the others.
        tail: Degrees of freedom of a t distribution of the spread between processes, 0 for normal.
        states: Part of the paths that have a second state, which is 2 to 10 % slower.
        chance: That a process of such a path is in its slow state.
        state: By how much slower it is; 0 for 2 to 10 %, another for each path.
        alternating: Whether chance decides which side goes first, as in `proton ab`; else the base
            always does.
        apart: Whether all base runs came before all new ones, in one block.
    """

    own: tuple[float, ...] = H200
    varied: float = 0.0
    noisy: float = 0.0
    within: float = 0.006
    session: float = 0.0001
    pair: float = 0.0003
    uneven: float = 0.0
    order: float = 0.0
    drift: float = 0.0
    wandering: float = 0.0
    lasting: float = 0.8
    warming: float = 0.0
    clocks: float = 0.0
    load: float = 0.0
    tail: int = 0
    states: float = 0.0
    chance: float = 0.5
    state: float = 0.0
    alternating: bool = True
    apart: bool = False

    def draw(self, program: Program, runs: int, generator: np.random.Generator) -> Drawn:
        """Return the launches of so many runs on each side."""
        paths = program.paths
        own, within, noisy = self.spreads(program, generator)
        order = self._order(runs, generator)
        middles = self._shared(order, generator)[:, :, None] * self._takes(paths, generator)
        middles += self._tailed((2, runs, paths), generator) * own
        slow = generator.random(paths) < self.states
        sizes = generator.uniform(*_NOISY, paths) if not self.state else self.state
        in_state = slow & (generator.random(middles.shape) < self.chance)
        middles += np.where(in_state, np.log1p(sizes), 0.0)
        slower = generator.random(paths) < 0.5
        middles += slower * np.log1p(self.clocks) * (generator.random((2, runs, 1)) < 0.5)
        slowed = np.zeros(paths, dtype=np.bool_)
        slowed[np.argsort(generator.random(paths) + noisy, kind="stable")[: program.slowed]] = True
        middles[1] += np.where(slowed, np.log1p(program.slowdown), 0.0)
        launches = self._launches(middles, within, program, generator=generator)
        return Drawn(launches[0], launches[1], np.zeros(0) if self.apart else order, slowed)

    def spreads(
        self, program: Program, generator: np.random.Generator
    ) -> tuple[Floats, Floats, Mask]:
        """Return each path's spread between processes and within one, and which are noisy."""
        paths = program.paths
        own = generator.choice(np.array(self.own), paths)
        own = own * np.exp(generator.normal(0.0, self.varied, paths))
        noisy = generator.random(paths) < self.noisy
        own[noisy] = generator.uniform(*_NOISY, int(noisy.sum()))
        within = np.exp(generator.normal(np.log(self.within), 0.4, paths))
        return own, within, noisy

    def _launches(
        self, middles: Floats, within: Floats, program: Program, *, generator: np.random.Generator
    ) -> Floats:
        """Return the launches, in ticks of the timer."""
        if program.launches == 1:
            return np.exp(middles)[..., None]
        # Half the precision takes half the time, and errs by a thousandth of a tick.
        shape, small = (*middles.shape, program.launches), np.float32
        spread = generator.standard_normal(shape, small) * within.astype(small)[:, None]
        sizes = generator.uniform(_SHORTEST, _LONGEST, program.paths)
        launches = np.exp(spread) * np.exp(sizes + middles).astype(small)[..., None]
        # One launch of a hundred is late by 10 to 100 %.
        late = generator.random(shape, small) < 0.01
        launches[late] *= 1.0 + generator.uniform(0.1, 1.0, int(late.sum())).astype(small)
        # Start and end are rounded.
        return np.floor(launches + generator.random(shape, small))

    def _order(self, runs: int, generator: np.random.Generator) -> Floats:
        if not self.alternating:
            return np.ones(runs)
        slots = pairs(Stage.PAIR, runs, str(generator.integers(2**32)))
        return np.array([1.0 if slot.base_first else -1.0 for slot in slots[::2]])

    def _shared(self, order: Floats, generator: np.random.Generator) -> Floats:
        """Return what all paths of a run share: one line for each side, one column for each run."""
        runs = len(order)
        own = generator.normal(0.0, self.pair, (2, runs))
        if self.apart:
            slots = np.arange(2 * runs).reshape(2, runs)
            common = generator.normal(0.0, self.session, (2, 1))
            second = np.zeros((2, runs))
        else:
            second = np.stack([order < 0, order > 0]).astype(np.float64)
            slots = (2 * np.arange(runs) + second).astype(np.int64)
            common = generator.normal(0.0, self.session, runs)
        wandering = _autocorrelated(2 * runs, self.wandering, self.lasting, generator=generator)
        warming = self.warming * (1.0 - np.exp(-slots / 3.0))
        is_slow = (slots + generator.integers(4)) % 4 < 2
        load = np.where(is_slow, self.load, -self.load)
        return (
            own
            + common
            + self.order * second
            + self.drift * slots
            + wandering[slots]
            + warming
            + load
        )

    def _takes(self, paths: int, generator: np.random.Generator) -> Floats:
        """Return how much of what paths share each takes."""
        if not self.uneven:
            return np.ones(paths)
        return np.exp(generator.normal(0.0, self.uneven, paths))

    def _tailed(self, shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
        if not self.tail:
            return generator.normal(0.0, 1.0, shape)
        scale = np.sqrt(self.tail / (self.tail - 2.0)) if self.tail > 2 else 3.0
        drawn: Floats = generator.standard_t(self.tail, shape) / scale
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
    """

    base: Floats
    new: Floats
    order: Floats
    slowed: Mask

    def first(self, pairs: int) -> Drawn:
        """Return the first pairs alone."""
        part = slice(0, pairs)
        return Drawn(self.base[part], self.new[part], self.order[part], self.slowed)


def _autocorrelated(
    count: int, spread: float, lasting: float, *, generator: np.random.Generator
) -> Floats:
    found = generator.normal(0.0, spread, count)
    for at in range(1, count):
        found[at] = lasting * found[at - 1] + np.sqrt(1.0 - lasting**2) * found[at]
    return found

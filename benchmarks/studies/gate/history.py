"""How many steps of histories are found, and how many found ones are false, on simulated series.

Everything printed is a simulation: the noise is an input, not a measurement, and the same authors
made the method and the models. ``python -m benchmarks.studies.gate.history``, from the top folder;
minutes. Seeded: the same command prints the same tables.

Apache Otava is compared with where it can be imported. It pins versions of many packages, so
install it alone: ``pip install --no-deps apache-otava`` in an environment with scipy.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.gate.experiment import Rate
from proton_bench.gate.history.history import LEVEL
from proton_bench.gate.history.steps import LEAST_CHANGE, find_steps
from proton_bench.model.arrays import Floats

# Finds the places of steps in each of many series of logarithms.
Rule = Callable[[Sequence[Floats]], list[list[int]]]

_SERIES, _POINTS, _STEPS = 300, 60, 50
_SIZES = (0.015, 0.02, 0.03, 0.05, 0.10)
# A step is found if it is placed within this many points.
_NEAR = 2
_FIRST_NIGHT, _LAST_NIGHT, _LOOKS_EVERY = 20, 120, 5


@dataclass(frozen=True, slots=True)
class Noise:
    """How the points of series differ without a step, on the log scale.

    Attributes:
        name: Its peculiarity.
        spread: Median over the series of the standard deviation.
        noisy_share: Part of the series with 2 to 10 %.
        slow_share: Part of the points that are 10 % slower.
        shared: Standard deviation of what all series of a point share.
        persistence: Correlation of consecutive points.
    """

    name: str
    spread: float = 0.003
    noisy_share: float = 0.0
    slow_share: float = 0.0
    shared: float = 0.0
    persistence: float = 0.0

    def draw(self, generator: np.random.Generator, series: int, points: int) -> Floats:
        """Return series without a step, shape (series, points)."""
        spreads = self.spread * np.exp(generator.normal(0.0, 0.5, series))
        is_noisy = generator.random(series) < self.noisy_share
        spreads = np.where(is_noisy, generator.uniform(0.02, 0.1, series), spreads)
        values: Floats = generator.normal(size=(series, points))
        for point in range(1, points):
            values[:, point] *= np.sqrt(1.0 - self.persistence**2)
            values[:, point] += self.persistence * values[:, point - 1]
        values *= spreads[:, None]
        values += np.log(1.1) * (generator.random(values.shape) < self.slow_share)
        return values + self.shared * generator.normal(size=points)


NOISES = (
    Noise("quiet: 0.3 %"),
    Noise("5 % of series noisy by 2 to 10 %", noisy_share=0.05),
    Noise("one point of ten 10 % slower", slow_share=0.1),
    Noise("shared by all series: 1 %", shared=0.01),
    Noise("0.3 %, consecutive points correlated by 0.5", persistence=0.5),
    Noise("0.3 %, consecutive points correlated by 0.8", persistence=0.8),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Results of a rule on series of which some have a step.

    Attributes:
        recall: Steps that were found.
        precision: Found ones that were steps.
        seconds: Processor time that it took.
    """

    recall: Rate
    precision: Rate
    seconds: float


def ours(series: Sequence[Floats]) -> list[list[int]]:
    """Return the steps as `proton history` finds them."""
    return [[step.at for step in steps] for steps in find_steps(series, level=LEVEL)]


def otava_rules() -> dict[str, Rule]:
    """Return Otava's two methods with its default values, {} where it cannot be imported."""
    try:
        analysis = importlib.import_module("otava.analysis")
    except ImportError:
        return {}

    def places(values: Floats, **options: float) -> list[int]:
        # Of arrays it takes all points in place of a window.
        found, _ = analysis.compute_change_points(np.exp(values).tolist(), **options)
        return [each.index for each in found]

    def default(series: Sequence[Floats]) -> list[list[int]]:
        return [places(values) for values in series]

    def least(series: Sequence[Floats]) -> list[list[int]]:
        return [places(values, min_magnitude=LEAST_CHANGE) for values in series]

    return {"Otava": default, "Otava, at least 0.5 %": least}


def simulated(noise: Noise, rule: Rule, seed: int) -> Found:
    """Return what a rule finds in series of which `_STEPS` have a step."""
    generator = np.random.default_rng(seed)
    values = noise.draw(generator, _SERIES, _POINTS)
    places = generator.integers(6, _POINTS - 6, _STEPS)
    for number, place in enumerate(places):
        values[number, place:] += np.log1p(generator.choice(_SIZES))
    begin = time.process_time()
    found = rule(list(values))
    seconds = time.process_time() - begin
    right = sum(
        any(abs(at - place) <= _NEAR for at in own)
        for own, place in zip(found, places, strict=False)
    )
    return Found(Rate(right, _STEPS), Rate(right, sum(map(len, found))), seconds)


def false_alarms(noise: Noise, rule: Rule, families: int, *, series: int = 100) -> Rate:
    """Return in how many families without a step one is found."""
    generator = np.random.default_rng(1)
    drawn = (noise.draw(generator, series, _POINTS) for _ in range(families))
    return Rate(sum(any(rule(list(each))) for each in drawn), families)


def alarms_over_time(noise: Noise, rule: Rule, families: int, *, series: int = 100) -> Rate:
    """Return in how many families without a step any look at the growing history finds one."""
    generator = np.random.default_rng(2)
    alarms = 0
    for _ in range(families):
        values = noise.draw(generator, series, _LAST_NIGHT)
        nights = range(_FIRST_NIGHT, _LAST_NIGHT + 1, _LOOKS_EVERY)
        alarms += any(any(rule(list(values[:, :night]))) for night in nights)
    return Rate(alarms, families)


def compared(families: int, seeds: int) -> None:
    """Print all tables."""
    rules: dict[str, Rule] = {"ours": ours, **otava_rules()}
    print("| noise | rule | recall | precision | families with a false step | processor seconds |")
    print("|---|---|---|---|---|---|")
    for noise in NOISES:
        for name, rule in rules.items():
            found = [simulated(noise, rule, seed) for seed in range(seeds)]
            recall = Rate(sum(each.recall.events for each in found), _STEPS * seeds)
            every = sum(each.precision.trials for each in found)
            precision = Rate(recall.events, every)
            alarms = false_alarms(noise, rule, families)
            seconds = sum(each.seconds for each in found) / seeds
            print(
                f"| {noise.name} | {name} | {_text(recall)} | {_text(precision)} | {_text(alarms)} "
                f"| {seconds:.2f} |",
                flush=True,
            )
    nights = alarms_over_time(NOISES[0], ours, families // 4)
    print(f"\nA look every {_LOOKS_EVERY} points, {_FIRST_NIGHT} to {_LAST_NIGHT}: {_text(nights)}")
    _drift(rules)
    _speed()


def _text(rate: Rate) -> str:
    low, high = rate.bounds()
    return f"{rate.value:.1%} [{low:.1%}, {high:.1%}]"


def _drift(rules: dict[str, Rule]) -> None:
    """Print how much of ten steps of 1.5 % is found."""
    generator = np.random.default_rng(3)
    places = np.arange(10, 101, 10)
    values = NOISES[0].draw(generator, 100, 110)
    values[:20] += np.log(1.015) * (np.arange(110)[:, None] >= places).sum(axis=1)
    print("\n| rule | of 200 steps of 1.5 % | steps in 80 other series |")
    print("|---|---|---|")
    for name, rule in rules.items():
        found = rule(list(values))
        hits = sum(
            any(abs(at - place) <= _NEAR for at in own) for own in found[:20] for place in places
        )
        print(f"| {name} | {hits} | {sum(map(len, found[20:]))} |")


def _speed() -> None:
    generator = np.random.default_rng(4)
    values = NOISES[0].draw(generator, 2000, 100)
    values[:50, 50:] += 0.02
    begin = time.process_time()
    found = ours(list(values))
    print(
        f"\n2 000 series of 100 points, 50 steps: {time.process_time() - begin:.1f} s, "
        f"{sum(map(len, found))} found"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=400, help="families without a step")
    parser.add_argument("--seeds", type=int, default=4, help="families with steps")
    options = parser.parse_args()
    compared(options.families, options.seeds)

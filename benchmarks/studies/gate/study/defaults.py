"""Defaults of the gate, compared with the results of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.studies.gate.study.components import Launches, PathSpread
from benchmarks.studies.gate.study.rebuilt import off_the_line
from benchmarks.studies.gate.study.simulated import Simulated
from proton_bench.gate.judge.rows import FLOOR_NS
from proton_bench.gate.machine.canary_shift import LARGEST_SHIFT
from proton_bench.gate.policy.policy import Policy

__all__ = ["Advice", "advise"]

_LEVEL = 0.05
_USELESS = 0.1  # a gate that misses larger changes is useless
_QUIET = 0.001  # gates without a change that may fail, as a part
_TICKS = 3  # of both ends of a launch, and one for a change
_SURE = 0.8  # part of +5 % to be found


@dataclass(frozen=True, slots=True)
class Advice:
    """One default.

    Attributes:
        name: Which.
        present: What it is now.
        measured: Its value in the study.
        recommended: What follows.
    """

    name: str
    present: str
    measured: str
    recommended: str


def advise(
    spreads: Sequence[PathSpread],
    *,
    launches: Launches,
    simulated: Sequence[Simulated],
) -> list[Advice]:
    """Return advice on every default that a study covers."""
    policy = Policy()
    found = [
        _margin(policy, spreads, off_the_line(launches)),
        _threshold(policy, spreads),
        _floor(spreads),
    ]
    pairs = _pairs(simulated)
    if pairs is not None:
        found.append(pairs)
    clock = _canary(launches)
    return [*found, clock] if clock is not None else found


def _margin(policy: Policy, spreads: Sequence[PathSpread], rebuilt: Mapping[str, float]) -> Advice:
    """A margin, half of the threshold, has to cover significant shifts of unchanged paths."""
    known = [each for each in spreads if math.isfinite(each.order_p)]
    certain = [abs(each.order) for each in known if each.order_p < _LEVEL / len(known)]
    binaries = max(rebuilt.values(), default=0.0)
    worst = max([*certain, binaries])
    return Advice(
        "margin",
        f"{policy.threshold / 2.0:.2%}",
        f"running second moves {len(certain)} of {len(known)} paths for certain, by "
        f"{max(certain, default=0.0):.2%} at most; another constant in the code by {binaries:.2%}",
        "keep" if worst <= policy.threshold / 2.0 else _up(worst),
    )


def _threshold(policy: Policy, spreads: Sequence[PathSpread]) -> Advice:
    """Say what six pairs hold: their error is ``sqrt(2 / 6) s``, and twice 11 of it are needed.

    11 is about t[5, 1 - 0.0001] + t[5, 0.9].
    """
    known = [each.process for each in spreads if math.isfinite(each.process)]
    if not known:
        return Advice("threshold", f"{policy.threshold:.1%}", "nothing", "keep")
    typical, noisy = (float(np.quantile(known, q)) for q in (0.5, 0.9))
    seen = [2.0 * 11.0 * math.sqrt(2.0 / 6.0) * each for each in (typical, noisy)]
    return Advice(
        "threshold",
        f"{policy.threshold:.1%}",
        f"between processes {typical:.2%} (nine of ten paths below {noisy:.2%}): six pairs hold "
        f"about {seen[0]:.1%}, of noisy paths {seen[1]:.1%}",
        "keep" if seen[0] <= policy.threshold else _up(seen[0]),
    )


def _floor(spreads: Sequence[PathSpread]) -> Advice:
    """A floor per launch has to cover ticks of the timer, and no change that the gate can find."""
    known = [each for each in spreads if math.isfinite(each.process)]
    present = f"{FLOOR_NS:.0f} ns"
    if not known:
        return Advice("floor", present, "nothing", "keep")
    shortest = min(known, key=lambda each: each.time_ns)
    ticks = _TICKS * max(each.step_ns for each in known)
    spread = shortest.process * shortest.time_ns
    needed = max(ticks, spread)
    return Advice(
        "floor",
        present,
        f"the shortest path takes {shortest.time_ns / 1000:.1f} us and differs between processes "
        f"by {spread:.0f} ns; {_TICKS} ticks of the timer are {ticks} ns",
        "keep" if needed <= FLOOR_NS <= 2.0 * needed else f"{needed:.0f} ns",
    )


def _pairs(simulated: Sequence[Simulated]) -> Advice | None:
    lines = [each for each in simulated if " pairs, 300" in each.session]
    if not lines:
        return None
    good = [
        each.session.split(",")[0]
        for each in lines
        if each.alarms.value <= _QUIET and each.found[0.05].value >= _SURE
    ]
    rates = "; ".join(
        f"{each.session.split(',')[0]}: {each.alarms.value:.1%}, {each.found[0.05].value:.0%}"
        for each in lines
    )
    return Advice(
        "pairs",
        "4 at first, 6 to fail, 10 at most",
        f"simulated false alarms and +5 % found: {rates}",
        good[0] if good else "more than 10",
    )


def _canary(launches: Launches) -> Advice | None:
    clocks = launches.log_clocks
    if not np.isfinite(clocks).all() or len(clocks) < 2:
        return None
    spread = float(np.std(clocks, ddof=1))
    beyond = 3.0 * spread * math.sqrt(2.0 / 6.0)
    return Advice(
        "canary shift",
        f"{math.expm1(LARGEST_SHIFT):.1%}",
        f"SM clock between processes {spread:.3%}; sides of six differ by less than {beyond:.2%}",
        "keep" if beyond <= LARGEST_SHIFT else _up(beyond),
    )


def _up(value: float) -> str:
    """Return a part as a default, in halves of a percent."""
    if value > _USELESS:
        return "keep: this machine is too noisy to choose by"
    return f"{math.ceil(value / 0.005) * 0.005:.1%}"

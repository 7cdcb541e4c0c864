"""Markdown tables of a study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.studies.gate.study.components import PathSpread, Shared
from benchmarks.studies.gate.study.defaults import Advice
from benchmarks.studies.gate.study.gates import Power, Tally
from benchmarks.studies.gate.study.plan import SLOWDOWNS
from benchmarks.studies.gate.study.rivals import Rival
from benchmarks.studies.gate.study.simulated import Simulated
from proton_bench.gate.machine.rate import Rate

__all__ = [
    "advice_table",
    "cycles_table",
    "lower_table",
    "order_line",
    "power_table",
    "rebuilt_line",
    "rivals_table",
    "shared_line",
    "simulated_table",
    "spread_table",
    "tally_table",
]

_LEVEL = 0.05
_HEADS = [f"+{slowdown:.0%}" for slowdown in SLOWDOWNS]


def spread_table(spreads: Iterable[PathSpread]) -> str:
    """Return the spread of paths; ``last`` is what the last place in a process adds."""
    spread_heads = ["within", "process", "without launches", "in cycles"]
    heads = ["path", "time", *spread_heads, "runs second", "p", "last", "step"]
    return _table(
        heads,
        (
            [
                "/".join(each.path),
                f"{each.time_ns / 1000:.1f} us",
                *(_part(part) for part in (each.within, each.process, each.between, each.cycles)),
                _signed(each.order),
                _number(each.order_p),
                _signed(each.position),
                f"{each.step_ns} ns",
            ]
            for each in spreads
        ),
    )


def order_line(spreads: Sequence[PathSpread]) -> str:
    """Return the effect of order on all paths, as a sentence."""
    known = [each for each in spreads if math.isfinite(each.order_p)]
    certain = sum(each.order_p < _LEVEL for each in known)
    middle = sorted(abs(each.order) for each in spreads)[len(spreads) // 2]
    return (
        f"{len(spreads)} paths in all. Running second moves the middle one by {middle:.3%} either "
        f"way; {certain} of {len(known)} have p < {_LEVEL}, of which chance gives {_LEVEL:.0%}."
    )


def shared_line(shared: Shared) -> str:
    """Return what all paths share, as a sentence."""
    return (
        f"All paths share {_part(shared.process)} between processes: {_part(shared.pair)} within a "
        f"pair, {_part(shared.session)} between pairs, and drift by {_signed(shared.drift)} a "
        "process."
    )


def rebuilt_line(rebuilt: Mapping[str, float]) -> str:
    """Return how far binaries of one source are off their straight line, as a sentence."""
    if not rebuilt:
        return "No kernel has all its variants."
    name = max(rebuilt, key=lambda each: rebuilt[each])
    middle = sorted(rebuilt.values())[len(rebuilt) // 2]
    return (
        f"Binaries of one source that differ in one constant are off the straight line of their "
        f"iterations by {_part(rebuilt[name])} at most ({name}), the middle kernel by "
        f"{_part(middle)}."
    )


def lower_table(
    tallies: Mapping[float, Tally], powers: Mapping[float, Mapping[tuple[str, float], Power]]
) -> str:
    """Return what lower thresholds would do on this machine, over every path."""
    lines = []
    for part, tally in tallies.items():
        cells = []
        for slowdown in SLOWDOWNS:
            ones = [one for (_, each), one in powers[part].items() if each == slowdown]
            gates = sum(one.gates for one in ones)
            cells.append(f"{sum(one.found for one in ones)} of {gates}")
        lines.append([f"{part:g}%", _bounded(tally.failed), *cells])
    return _table(["threshold", "failed without a change", *_HEADS], lines)


def tally_table(tallies: Mapping[str, Tally]) -> str:
    """Return gates in which nothing changed."""
    return _table(
        ["policy", "gates", "paths", "verdicts", "failed"],
        (
            [
                name,
                str(tally.gates),
                str(tally.paths),
                ", ".join(
                    f"{count} {verdict}" for verdict, count in sorted(tally.verdicts.items())
                ),
                _bounded(tally.failed),
            ]
            for name, tally in tallies.items()
        ),
    )


def power_table(
    power: Mapping[tuple[str, float], Power], realised: Mapping[tuple[str, float], float]
) -> str:
    """Return what was found of each slowed kernel, with how much slower it really was."""
    lines = [
        [work, *(_found(power[work, each], realised[work, each]) for each in SLOWDOWNS)]
        for work in sorted({work for work, _ in power})
    ]
    every = {
        each: [one for (_, slowdown), one in power.items() if slowdown == each]
        for each in SLOWDOWNS
    }
    sums = [
        _bounded(Rate(sum(one.found for one in ones), sum(one.gates for one in ones)))
        for ones in every.values()
    ]
    return _table(["kernel", *_HEADS], [*lines, ["all", *sums]])


def cycles_table(
    by_time: Mapping[tuple[str, float], Power], by_both: Mapping[tuple[str, float], Power]
) -> str:
    """Return what asking for agreement in cycles costs in power, and what it saves."""
    lines = []
    for name, power in (("time alone", by_time), ("time and cycles", by_both)):
        cells = []
        for slowdown in SLOWDOWNS:
            ones = [one for (_, each), one in power.items() if each == slowdown]
            gates = sum(one.gates for one in ones)
            found, others = sum(one.found for one in ones), sum(one.others for one in ones)
            cells.append(f"{found} of {gates}, {others} other")
        lines.append([name, *cells])
    return _table(["confirmed by", *_HEADS], lines)


def rivals_table(rivals: Sequence[Rival], tally: Tally, power: Mapping[object, Power]) -> str:
    """Return all rules on identical data, ours by the real judge."""
    ours = {}
    for (_, slowdown), one in power.items():  # type: ignore[misc]
        before = ours.get(slowdown, Rate(0, 0))
        ours[slowdown] = Rate(before.events + one.found, before.trials + one.gates)
    every = [*rivals, Rival("ours", Rate(tally.regressed, tally.gates), ours)]
    slowdowns = list(every[0].found)
    return _table(
        ["rule", "false alarms", *(f"+{slowdown:.0%}" for slowdown in slowdowns)],
        (
            [each.name, _bounded(each.alarms), *(f"{each.found[s].value:.0%}" for s in slowdowns)]
            for each in every
        ),
    )


def simulated_table(lines: Iterable[Simulated]) -> str:
    """Return simulated experiments."""
    return _table(
        ["experiment (simulated)", "false alarms", *_HEADS],
        (
            [
                each.session,
                _bounded(each.alarms, digits=1),
                *(_share(each.found[s]) for s in SLOWDOWNS),
            ]
            for each in lines
        ),
    )


def advice_table(advice: Iterable[Advice]) -> str:
    """Return defaults compared with measured values."""
    return _table(
        ["default", "now", "measured", "recommended"],
        ([each.name, each.present, each.measured, each.recommended] for each in advice),
    )


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _found(power: Power, realised: float) -> str:
    return f"{power.found} of {power.gates} ({realised:+.2%})"


def _bounded(rate: Rate, digits: int = 0) -> str:
    low, high = rate.bounds()
    return (
        f"{rate.events} of {rate.trials}: {rate.value:.{digits}%} "
        f"[{low:.{digits}%}, {high:.{digits}%}]"
    )


def _share(rate: Rate) -> str:
    return f"{rate.value:.0%}" if rate.trials else "none quiet enough"


def _part(value: float) -> str:
    return f"{value:.2%}" if math.isfinite(value) else ""


def _signed(value: float) -> str:
    return f"{value:+.3%}" if math.isfinite(value) else ""


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else ""

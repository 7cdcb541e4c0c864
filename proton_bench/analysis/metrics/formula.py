"""Parses names of derived metrics: ``time/ms``, ``avg_time/us``, ``tflop8/s``, ``time/%``.

`derive` evaluates formulas on a profile, `viewer` on a data frame.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from proton_bench.errors import MetricError, UnknownMetricError
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.support.text import did_you_mean, visible

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
FLOPS_WIDTHS = (8, 16, 32, 64)

_PREFIXES = {"": 1.0, "g": 1e9, "t": 1e12}
# Of what launches name, or of what counters measured: see `measured_work`.
_RATE = re.compile(
    r"(?P<by>(?:dram_|pipe_)?)(?P<prefix>[gt]?)(?:flop(?P<width>8|16|32|64)?|(?P<byte>byte))/s"
)
_RATES = {"gflops": "gflop/s", "tflops": "tflop/s"}
AVERAGE = "avg_"
# Of an inclusive metric or of wall times: the values of rows without those of the rows below.
SELF = "self_"
# `count` counts kernels and operators, so an average over it says nothing about other times.
_AVERAGED = ("time", "cpu_time")
_MAX_SHOWN = 80  # characters of a name in a message


class Divisor(StrEnum):
    """Divisor of a formula."""

    NOTHING = "nothing"
    COUNT = "count"
    SECONDS = "seconds"
    TOTAL = "total"
    PEAK = "peak"


@dataclass(frozen=True, slots=True)
class Formula:
    """value = source / divisor / scale.

    Attributes:
        name: The user's name, in lower case.
        source: Base name of the recorded metric, "" for ``util``.
        divisor: What to divide by; ``SECONDS`` is inclusive time, else wall time, ``COUNT`` the
            calls that the source was recorded for: see `calls`.
        scale: Size of one unit of the result; for times in seconds.
        timed: Whether the source is a time that has to be converted to seconds first.
    """

    name: str
    source: str
    divisor: Divisor = Divisor.NOTHING
    scale: float = 1.0
    timed: bool = False


def parse_formula(name: str) -> Formula | None:
    """Return the formula that a name stands for, None when it is a recorded metric's name.

    Raises:
        MetricError: The part after the slash is not a unit.
    """
    text = name.strip().lower()
    text = _RATES.get(text, text)
    if text == "util":
        return Formula(text, "", Divisor.PEAK)
    rate = _RATE.fullmatch(text)
    if rate is not None:
        source = rate["by"] + ("bytes" if rate["byte"] else f"flops{rate['width'] or ''}")
        return Formula(text, source, Divisor.SECONDS, _PREFIXES[rate["prefix"]])
    source, slash, unit = text.rpartition("/")
    if not slash:
        return None
    if unit == "%":
        return Formula(text, source, Divisor.TOTAL, 0.01)
    if unit not in SECONDS:
        raise MetricError(
            f"metric {name!r}: Unsupported unit {unit}; units are {', '.join(SECONDS)} and %"
        )
    averaged = source.removeprefix(AVERAGE)
    if averaged != source and averaged in _AVERAGED:
        return Formula(text, averaged, Divisor.COUNT, SECONDS[unit], timed=True)
    return Formula(text, source, Divisor.NOTHING, SECONDS[unit], timed=True)


def divisor_of(name: str) -> Divisor:
    """Return what a metric is divided by: nothing if it was recorded, or does not exist."""
    try:
        formula = parse_formula(name)
    except MetricError:
        return Divisor.NOTHING
    return Divisor.NOTHING if formula is None else formula.divisor


def find_metric(name: str, recorded: Iterable[str]) -> str | None:
    """Return the full name of the recorded metric: case is ignored, and the unit may be left out.

    Args:
        name: ``time``, ``TIME (ns)``; also with ``(inc)`` behind it, as reports show it.
        recorded: Full names in the order of preference.
    """
    wanted = name.strip().lower().removesuffix("(inc)").strip()
    return _wanted(tuple(recorded)).get(wanted)


@functools.lru_cache(maxsize=64)
def _wanted(names: tuple[str, ...]) -> dict[str, str]:
    """Return the metric of each accepted text; full names win over those without unit."""
    found = {MetricSpec(full).base.lower(): full for full in reversed(names)}
    return found | {full.lower(): full for full in reversed(names)}


def unknown_metric(
    name: str, recorded: Iterable[str], derivable: Iterable[str] = ()
) -> UnknownMetricError:
    """Return the error to raise for a metric that a profile does not have.

    Args:
        name: The requested name.
        recorded: Full names of recorded metrics, which the message names.
        derivable: Names of others that would be understood; like recorded ones they are suggested
            if they are similar.
    """
    recorded = tuple(recorded)
    bases = sorted({MetricSpec(full).base.lower() for full in recorded})
    known = ", ".join(visible(base, _MAX_SHOWN) for base in bases) or "nothing"
    offered = [*bases, *(derivable or derivable_names(recorded))]
    meant = did_you_mean(name.strip().lower(), offered)
    return UnknownMetricError(
        f"Metric {visible(name, _MAX_SHOWN)} is not found: recorded are {known}{meant or '.'} "
        "`proton view --list FILE` shows all metrics"
    )


def derivable_names(recorded: Iterable[str]) -> tuple[str, ...]:
    """Return the names of metrics that can be derived from those recorded, in a fixed order."""
    specs = [MetricSpec(full) for full in recorded]
    bases = {spec.base.lower() for spec in specs}
    times = sorted(spec.base.lower() for spec in specs if spec.unit in SECONDS)
    names = [f"{base}/{unit}" for base in times for unit in SECONDS]
    if "count" in bases:
        averaged = [base for base in times if base in _AVERAGED]
        names += [f"{AVERAGE}{base}/{unit}" for base in averaged for unit in SECONDS]
    if bases & {"time", "wall"}:  # of scopes without operators there is nothing but wall times
        widths = [str(width) for width in FLOPS_WIDTHS if f"flops{width}" in bases]
        widths = ["", *widths] if widths or "flops" in bases else []
        names += [f"{prefix}flop{width}/s" for width in widths for prefix in _PREFIXES]
        names += [f"{prefix}byte/s" for prefix in _PREFIXES if "bytes" in bases]
        if "time" in bases and bases & {"bytes", *(f"flops{w}" for w in FLOPS_WIDTHS)}:
            names.append("util")
    return tuple(names)

"""Options of hardware counters: the tier, the metrics, and how they are sampled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from proton_bench.errors import UsageError
from proton_bench.plugin import Mode
from proton_bench.recording.counters.metric_sets import (
    DEFAULT_SET,
    METRIC_SETS,
    metric_candidates,
    range_candidates,
)
from proton_bench_plugins.mode_values import AskedValues, Number

__all__ = ["MODE", "OPTIONS", "TIER_OPTION", "Counting", "Tier", "read_counting"]

MODE = "counters"
TIER_OPTION = {
    "counters": "gpm: the whole run by GPM alone; exact: as mode counters with exact=launch",
}
OPTIONS = {
    "exact": (
        "off (default): bursts of samples; launch or scope: each is counted by itself, which waits "
        "for the device around it"
    ),
    "metrics": (
        f"what is counted: a set ({', '.join(METRIC_SETS)}; default {DEFAULT_SET}), or NVIDIA's "
        "names of metrics joined by +"
    ),
    "interval_us": "time between two samples of a burst, 1 to 1000 us; default 10",
    "burst_ms": "length of a burst, 1 to 100 ms; default 2",
}
_COUNTED = ("launch", "scope")
_INTERVAL_US = Number("interval_us", range(1, 1001), 10)
_BURST_MS = Number("burst_ms", range(1, 101), 2)


class Tier(StrEnum):
    """How counters are read."""

    SAMPLED = "sampled"  # bursts of the whole device, joined with kernels
    EXACT = "exact"
    GPM = "gpm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """How hardware counters are read.

    Attributes:
        tier: The way.
        sets: NVIDIA's metrics, the richest set first: a GPU takes the first that fits one pass.
        interval_us: Time between two samples of a burst.
        burst_ms: Length of a burst.
        counted: What is counted exactly, ``launch`` or ``scope``.
    """

    tier: Tier = Tier.SAMPLED
    sets: tuple[tuple[str, ...], ...] = METRIC_SETS[DEFAULT_SET]
    interval_us: int = _INTERVAL_US.default
    burst_ms: int = _BURST_MS.default
    counted: str = ""


def read_counting(mode: Mode, environ: Mapping[str, str]) -> Counting | None:
    """Return how to read counters, None for not at all.

    Args:
        mode: Mode with its options.
        environ: Environment to read.

    Raises:
        UsageError: An option has an invalid value.
    """
    asked = AskedValues(mode, environ)
    if mode.name == MODE:
        metrics = mode.options.get("metrics", DEFAULT_SET).replace("+", ",")
        exact = asked.choice("exact", "", ("off", *_COUNTED))
        if exact in _COUNTED:
            _refuse_sampling(mode, exact)
            return Counting(tier=Tier.EXACT, sets=range_candidates(metrics), counted=exact)
        return Counting(
            sets=metric_candidates(metrics),
            interval_us=asked.number(_INTERVAL_US),
            burst_ms=asked.number(_BURST_MS),
        )
    if MODE not in mode.options:
        return None
    tier = asked.choice(MODE, "", (Tier.GPM.value, Tier.EXACT.value))
    if mode.name and tier != Tier.GPM:
        raise UsageError(f"mode {mode.name!r} and counters={tier} exclude each other: choose one")
    if tier == Tier.EXACT:
        return Counting(tier=Tier.EXACT, sets=range_candidates(), counted=_COUNTED[0])
    return Counting(tier=Tier(tier))


def _refuse_sampling(mode: Mode, exact: str) -> None:
    """Refuse options of samples, which would do nothing."""
    for option in (_INTERVAL_US.option, _BURST_MS.option):
        if option in mode.options:
            raise UsageError(
                f"options {option!r} and exact={exact} exclude each other: nothing is sampled"
            )

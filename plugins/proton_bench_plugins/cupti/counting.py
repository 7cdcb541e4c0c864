"""Options of hardware counters: the metrics, and how they are sampled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proton_bench.errors import UsageError
from proton_bench.plugin import Mode
from proton_bench.recording.counters.metric_sets import (
    DEFAULT_SET,
    METRIC_SETS,
    metric_candidates,
)
from proton_bench_plugins.mode_values import AskedValues, Number

__all__ = ["GPM_OPTION", "MODE", "OPTIONS", "Counting", "read_counting"]

MODE = "counters"
GPM_OPTION = {"counters": "gpm: counters of the whole run by GPM alone, without bursts"}
OPTIONS = {
    "metrics": (
        f"what is counted: a set ({', '.join(METRIC_SETS)}; default {DEFAULT_SET}), or NVIDIA's "
        "names of metrics joined by +"
    ),
    "interval_us": "time between two samples of a burst, 1 to 1000 us; default 10",
    "burst_ms": "length of a burst, 1 to 100 ms; default 2",
}
_INTERVAL_US = Number("interval_us", range(1, 1001), 10)
_BURST_MS = Number("burst_ms", range(1, 101), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """How bursts of samples are taken.

    Attributes:
        sets: NVIDIA's metrics, the richest set first: a GPU takes the first that fits one pass.
        interval_us: Time between two samples of a burst.
        burst_ms: Length of a burst.
    """

    sets: tuple[tuple[str, ...], ...] = METRIC_SETS[DEFAULT_SET]
    interval_us: int = _INTERVAL_US.default
    burst_ms: int = _BURST_MS.default


def read_counting(mode: Mode, environ: Mapping[str, str]) -> Counting | None:
    """Return how to sample counters, None for not at all.

    Args:
        mode: Mode with its options.
        environ: Environment to read.

    Raises:
        UsageError: An option has an invalid value.
    """
    if mode.name == MODE:
        asked = AskedValues(mode, environ)
        return Counting(
            sets=metric_candidates(mode.options.get("metrics", DEFAULT_SET).replace("+", ",")),
            interval_us=asked.number(_INTERVAL_US),
            burst_ms=asked.number(_BURST_MS),
        )
    value = mode.options.get(MODE, "gpm")
    if value.lower() != "gpm":
        raise UsageError(
            f"option {MODE!r} of mode {mode.text!r} is {value!r}; choose gpm, for the whole run. "
            "For kernels, sample by -m counters, or count exactly by `ncu --csv --page raw` and "
            "show its file by `proton view --counters FILE`"
        )
    return None

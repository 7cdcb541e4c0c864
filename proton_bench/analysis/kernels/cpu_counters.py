"""What a processor did for operators, interpreted kernels and scopes: ``ipc`` and rates of misses.

All counters of a thread count at the same time, so their ratios are right even where the kernel
divided the processor's counters among several users and scaled the counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from proton_bench.analysis.kernels.counter_facts import said_of
from proton_bench.analysis.metrics.formula import unknown_metric
from proton_bench.analysis.metrics.values import MetricValues, quotient
from proton_bench.model.metrics.counter_columns import (
    BRANCH_MISSES,
    CACHE_MISSES,
    CPU_CYCLES,
    INSTRUCTIONS,
)
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

__all__ = ["cpu_counter_error", "cpu_ratio_names", "cpu_ratio_values", "is_cpu_ratio"]

_PER_KILO = 1000.0


@dataclass(frozen=True, slots=True)
class _Ratio:
    of: str
    by: str
    scale: float
    meaning: str


_RATIOS: Mapping[str, _Ratio] = {
    "ipc": _Ratio(INSTRUCTIONS, CPU_CYCLES, 1.0, "instructions per cycle, in user space"),
    "cache_mpki": _Ratio(
        CACHE_MISSES, INSTRUCTIONS, _PER_KILO, "misses of the last cache per 1000 instructions"
    ),
    "branch_mpki": _Ratio(
        BRANCH_MISSES, INSTRUCTIONS, _PER_KILO, "mispredicted branches per 1000 instructions"
    ),
}


def is_cpu_ratio(name: str) -> bool:
    """Return whether the name is one of these metrics."""
    return name.strip().lower() in _RATIOS


def cpu_ratio_names(recorded: Iterable[str]) -> tuple[str, ...]:
    """Return the names that can be derived from these recorded numbers."""
    known = set(recorded)
    return tuple(name for name, ratio in _RATIOS.items() if {ratio.of, ratio.by} <= known)


def cpu_ratio_values(profile: Profile, name: str) -> MetricValues:
    """Return one of these metrics for each row and all rows below it.

    Raises:
        UnknownMetricError: Its counters were not recorded.
    """
    text = name.strip().lower()
    numbers = [column for column, each in profile.columns.items() if each.kind.is_number]
    if text not in cpu_ratio_names(numbers):
        raise unknown_metric(name, profile.columns, cpu_ratio_names(numbers))
    ratio = _RATIOS[text]
    known = profile.covered(ratio.of) & profile.covered(ratio.by)
    values, valid = quotient(
        profile.inclusive(ratio.of) * ratio.scale, profile.inclusive(ratio.by), known
    )
    return MetricValues(text, Aggregation.PROPERTY, values, valid, ratio.meaning)


def cpu_counter_error(profile: Profile) -> str:
    """Return why a run has no processor counters although it asked for them, "" for no reason."""
    said = said_of(profile, "cpu_counters")
    error = said.get("error") if said is not None else None
    return error if isinstance(error, str) else ""

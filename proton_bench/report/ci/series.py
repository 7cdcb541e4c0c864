"""Values by call path for other tools' charts, from a gate or from benchmarks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from proton_bench.gate.judge.outcome import Outcome
from proton_bench.report.words.gate_words import path_text

__all__ = ["Series", "series_of"]

_UNITS = {"cycles": "cycles", "flops": "flop/s", "gbps": "GB/s", "mem": "bytes"}
_MOST_NAME = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One value of this commit for a chart over commits.

    Attributes:
        name: Call path on one line, with its number where several rows have it.
        metric: Its name in thresholds.
        unit: Of the values, such as ``ns``; "" where they have none.
        value: New value.
        base: Base value; NaN if there is none.
        change: New divided by base, minus 1; NaN if it is unknown.
        low: Lower end of its 95 % interval.
        high: Upper end.
        verdict: Of the gate, "" without one.
        runs: Number of processes behind the value.
    """

    name: str
    metric: str
    unit: str
    value: float
    base: float = math.nan
    change: float = math.nan
    low: float = math.nan
    high: float = math.nan
    verdict: str = ""
    runs: int = 1

    @property
    def grows_when_worse(self) -> bool:
        """Whether more is worse, which holds except for rates."""
        return not self.unit.endswith("/s")


def series_of(outcome: Outcome) -> Iterator[Series]:
    """Yield one series for each row of a gate that has a value, worst first."""
    seen: Counter[tuple[str, str]] = Counter()
    for row in outcome.result.rows:
        if not math.isfinite(row.new):
            continue
        name = path_text(row.path, _MOST_NAME)
        name += f" #{row.occurrence + 1}" if row.occurrence else ""
        seen[name, row.metric] += 1
        # Names that differ only in hidden characters would be one series.
        again = seen[name, row.metric]
        yield Series(
            name=f"{name} ({again})" if again > 1 else name,
            metric=row.metric,
            unit=_UNITS.get(row.metric, outcome.result.unit),
            value=row.new,
            base=row.base,
            change=row.change,
            low=row.low,
            high=row.high,
            verdict=row.verdict.value,
            runs=row.new_runs,
        )

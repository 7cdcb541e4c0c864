"""One metric of every row, for reports and comparisons, and how a derived one is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

__all__ = ["INTERVAL_NOTE", "WIDEST", "DerivedMetric", "MetricValues", "quotient"]

WIDEST = 6.0  # points of half an interval
# Of every metric with intervals; amounts are withheld with the share that they come from.
INTERVAL_NOTE = (
    f"+- is half of the 95 % interval, - where the share has more than {WIDEST:g} points"
)


@dataclass(frozen=True, slots=True, eq=False)
class MetricValues:
    """One metric of every row.

    Attributes:
        name: The requested name, or the default.
        aggregation: How values of children relate to those of their parent.
        values: int64 or float64; objects for texts and vectors.
        valid: Whether the row has a value; else its entry in ``values`` is undefined.
        meaning: Meaning of a value, "" if the aggregation implies it.
        halves: Half of the 95 % interval of each value, in its unit; None if there is none.
    """

    name: str
    aggregation: Aggregation
    values: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_]
    meaning: str = ""
    halves: npt.NDArray[np.float64] | None = None

    @property
    def title(self) -> str:
        """The name, with ``(inc)`` if values include the rows below."""
        return f"{self.name} (inc)" if self.aggregation is Aggregation.INCLUSIVE else self.name

    @property
    def is_number(self) -> bool:
        """Whether values can be compared and added."""
        return self.values.dtype != np.dtype(object)

    def take(self, rows: npt.NDArray[Any]) -> MetricValues:
        """Return the values of these rows (positions or mask)."""
        halves = None if self.halves is None else self.halves[rows]
        return replace(self, values=self.values[rows], valid=self.valid[rows], halves=halves)

    def to_list(self) -> list[Any]:
        """Return plain Python values, None for missing ones."""
        pairs = zip(self.values.tolist(), self.valid.tolist(), strict=True)
        return [value if valid else None for value, valid in pairs]


@dataclass(frozen=True, slots=True)
class DerivedMetric:
    """Metrics that one computation makes: one entry of the registry.

    Attributes:
        names: Matches their names, in lower case.
        offered: Returns those that a profile has, from it and its recorded numbers.
        values: Returns one of them; it raises MetricError where the profile lacks its source.
        prepare: Adds to a profile what it needs of single variants, before they are folded.
        needs_samples: Whether it is about the samples of single launches.
    """

    names: re.Pattern[str]
    offered: Callable[[Profile, Sequence[str]], Iterable[str]]
    values: Callable[[Profile, str], MetricValues]
    prepare: Callable[[Profile], Profile] | None = None
    needs_samples: bool = False


def quotient(
    values: npt.NDArray[Any], by: npt.NDArray[Any], known: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return values / by and a mask of valid results; division by zero is not valid."""
    known = known & (by != 0)
    result = np.full(len(values), np.nan)
    np.divide(values, by, out=result, where=known)
    return result, known

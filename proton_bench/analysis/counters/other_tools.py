"""The counters of another tool beside the rows of a profile: sums, means, and doubtful matches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.counters.file import CounterFile
from proton_bench.analysis.counters.units import is_summable
from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.metrics.weighted import with_mean
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.profile import Profile

__all__ = ["CounterJoin", "Doubt"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A kernel whose launches may have been given to the wrong rows.

    Attributes:
        kernel: Its name in the file of counters, with the grid where that tells launches apart.
        measured: Launches in that file.
        launched: Launches in the profile.
        places: Rows of it in the profile, variants folded.
    """

    kernel: str
    measured: int
    launched: int
    places: int

    @property
    def counts_differ(self) -> bool:
        """Whether the two runs launched it a different number of times, so rows do not match."""
        return self.measured != self.launched


@dataclass(frozen=True, slots=True, eq=False)
class CounterJoin:
    """The row of each measured launch.

    Attributes:
        file: The measured launches.
        rows: Row of the profile for each launch, -1 if none matches.
        unmeasured: Launches of kernels in the profile that are not in the file.
        doubts: Kernels with several rows, to which launches were assigned by order.
    """

    file: CounterFile
    rows: npt.NDArray[np.int64]
    unmeasured: int
    doubts: tuple[Doubt, ...] = ()

    @property
    def matched(self) -> int:
        """Number of matched launches."""
        return int((self.rows >= 0).sum())

    def unmatched(self) -> Mapping[str, int]:
        """Return the number of launches without a row by kernel, most first."""
        counts: dict[str, int] = defaultdict(int)
        for launch, row in zip(self.file.launches, self.rows.tolist(), strict=True):
            if row < 0:
                counts[launch.kernel] += 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    def find(self, name: str) -> str | None:
        """Return the full name of a counter: any case, with or without unit or ``/%`` behind it."""
        names = self.file.names
        return find_metric(name, names) or find_metric(name.rpartition("/")[0] or name, names)

    def shown_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the counters that rows have: those that are summed, and those with a mean."""
        launches = zip(self.file.launches, self.rows.tolist(), strict=True)
        names = dict.fromkeys(n for launch, row in launches if row >= 0 for n in launch.values)
        sums = tuple(name for name in names if _is_sum(name))
        return sums, tuple(name for name in names if not _is_sum(name))

    def extend(self, profile: Profile, names: Iterable[str]) -> Profile:
        """Return the profile with these counters: amounts are summed, all others have a mean.

        Means weigh each launch by its time in the file where it says one.

        Args:
            profile: The profile that was joined.
            names: Full names of counters.
        """
        weights = [launch.duration_ns or 1.0 for launch in self.file.launches]
        for name in names:
            if _is_sum(name):
                profile = self._with_sum(profile, name)
            else:
                profile = self._with_mean(profile, name, weights)
        return profile

    def _values(self, name: str) -> Iterator[tuple[int, int, float]]:
        for place, (launch, row) in enumerate(
            zip(self.file.launches, self.rows.tolist(), strict=True)
        ):
            if row >= 0 and name in launch.values:
                yield place, row, launch.values[name]

    def _with_sum(self, profile: Profile, name: str) -> Profile:
        values = np.zeros(len(profile))
        valid = np.zeros(len(profile), dtype=np.bool_)
        for _, row, value in self._values(name):
            values[row] += value
            valid[row] = True
        spec = MetricSpec(name, Aggregation.INCLUSIVE)
        column = MetricColumn(spec, ValueKind.FLOAT, values.astype("<f8"), valid)
        return _with_column(profile, column)

    def _with_mean(self, profile: Profile, name: str, weights: Sequence[float]) -> Profile:
        total, weight = np.zeros(len(profile)), np.zeros(len(profile))
        for place, row, value in self._values(name):
            total[row] += value * weights[place]
            weight[row] += weights[place]
        mean = np.divide(total, weight, out=np.full(len(profile), np.nan), where=weight > 0)
        return with_mean(profile, name, values=mean, weights=weight)


def _is_sum(name: str) -> bool:
    spec = MetricSpec(name)
    return is_summable(spec.base, spec.unit)


def _with_column(profile: Profile, column: MetricColumn) -> Profile:
    return replace(profile, columns={**profile.columns, column.spec.name: column})

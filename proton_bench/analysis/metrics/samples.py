"""Statistics of single launches: median, p95, min, max and cv of a row's own samples.

They come from the distributions of a `.proton` file. Samples of different rows are not comparable,
so a row with calls shows only its own. A row without calls shows those of all launches below it,
like its count and mean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from proton_bench.analysis.accounting.calls import has_own_calls
from proton_bench.analysis.kernels.scope_cycles import CYCLES
from proton_bench.analysis.metrics.formula import SECONDS
from proton_bench.analysis.metrics.values import DerivedMetric, MetricValues
from proton_bench.errors import MetricError
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation, MetricSpec
from proton_bench.model.profile import Profile

# Least spread in buckets: a smaller one cannot be computed from counts of buckets.
_LEAST_SKETCHED = 2.5


def coefficient_of_variation(samples: Distribution) -> float | None:
    """Return standard deviation / mean, None if there is no spread.

    It is exact if all samples are kept. Else it comes from the sketch of the samples, within 1 %.
    Without a sketch, or if the spread is near the width of its buckets, it comes from the moments
    of ln t as for log-normal times: ``cv = sqrt(exp(variance of ln t) - 1)``.
    """
    positive = samples.n - samples.zero_count
    if samples.n < 2 or not positive:
        return None
    if len(samples.samples) == samples.n:
        raw = samples.samples.astype(np.float64)
        mean = float(raw.mean())
        return float(raw.std(ddof=1)) / mean if mean > 0 else None
    if samples.has_sketch and samples.minimum >= 0:
        spread = _sketched_spread(samples)
        if spread > _LEAST_SKETCHED * (samples.bucket_ratio - 1.0):
            return spread
    if samples.zero_count:
        return None
    mean_ln = samples.sum_ln / positive
    variance = max(samples.sum_ln2 / positive - mean_ln * mean_ln, 0.0)
    return math.sqrt(math.expm1(min(variance * samples.n / (samples.n - 1), 700.0)))


def _sketched_spread(samples: Distribution) -> float:
    """Return standard deviation / mean of samples at the middle of their buckets."""
    powers = samples.bucket_index * math.log(samples.bucket_ratio)
    # Values as multiples of the largest, which cannot overflow.
    values = np.exp(powers - powers.max())
    if samples.open_below:
        # The lowest bucket has all smaller values; their sum gives the mean.
        rest = samples.total / samples.maximum - float((values * samples.bucket_count)[1:].sum())
        least = samples.minimum / samples.maximum
        values[0] = min(max(rest / int(samples.bucket_count[0]), least), float(values[0]))
    mean = float((values * samples.bucket_count).sum()) / samples.n
    squares = float((np.square(values - mean) * samples.bucket_count).sum())
    squares += samples.zero_count * mean * mean
    return math.sqrt(squares / (samples.n - 1)) / mean


_STATISTICS: dict[str, Callable[[Distribution], float | None]] = {
    "median": lambda samples: samples.quantile(0.5),
    "p95": lambda samples: samples.quantile(0.95),
    "min": lambda samples: samples.minimum if samples.n else None,
    "max": lambda samples: samples.maximum if samples.n else None,
    "cv": coefficient_of_variation,
}
_MEANING = "over the calls of the row alone or, if it has none, over the launches below it"
_MEANING_INSIDE = "over the passes of the scope in all warps"
_NAME = re.compile(rf"(?P<what>{'|'.join(_STATISTICS)})_(?P<source>[^/]+)(?:/(?P<unit>\w+))?")


def is_sample_statistic(name: str) -> bool:
    """Return whether a name is one of these statistics: ``median_time/us``, ``cv_time``."""
    return _NAME.fullmatch(name.strip().lower()) is not None


def _offered(profile: Profile, numbers: Sequence[str]) -> tuple[str, ...]:
    del numbers
    found = []
    for spec in map(MetricSpec, profile.distributions):
        base = spec.base.lower()
        for what in _STATISTICS:
            timed = what != "cv" and spec.unit in SECONDS
            found += [f"{what}_{base}/{unit}" for unit in SECONDS] if timed else [f"{what}_{base}"]
    return tuple(found)


def sample_values(profile: Profile, name: str) -> MetricValues:
    """Return a statistic of the samples of each row.

    Args:
        profile: Rows that a report shows.
        name: ``median_time/us``, ``p95_time``, ``cv_time``; without unit in the metric's own unit.

    Raises:
        MetricError: No samples of the metric were recorded, or the unit does not fit.
    """
    match = _NAME.fullmatch(name.strip().lower())
    if match is None:
        raise MetricError(f"metric {name!r} is not a statistic of samples")
    source = _source(profile, name, match["source"])
    scale = _scale(name, MetricSpec(source).unit, what=match["what"], unit=match["unit"])
    statistic = _STATISTICS[match["what"]]
    values = np.full(len(profile), np.nan)
    for row, samples in _by_row(profile, source):
        value = statistic(samples)
        if value is not None:
            values[row] = value * scale
    meaning = _MEANING_INSIDE if source == CYCLES else _MEANING
    return MetricValues(match[0], Aggregation.EXCLUSIVE, values, np.isfinite(values), meaning)


SAMPLE_STATISTICS = DerivedMetric(_NAME, offered=_offered, values=sample_values, needs_samples=True)


def _by_row(profile: Profile, source: str) -> Iterator[tuple[int, Distribution]]:
    """Yield the samples that each row shows, from the last row to the first."""
    own = dict(profile.samples(source) or ())
    column = profile.columns.get(source)
    if column is None or column.spec.aggregation is not Aggregation.INCLUSIVE:
        yield from own.items()  # rows above include the same time
        return
    is_called = has_own_calls(profile)
    lost = is_called.copy()  # rows with calls here or below, but without samples
    lost[list(own)] = False
    lost = np.add.accumulate(np.append(0, lost))
    is_whole = lost[profile.subtree_end] == lost[:-1]
    below: dict[int, list[Distribution]] = {}
    for row in range(len(profile) - 1, -1, -1):
        samples, parts = own.get(row), below.pop(row, [])
        everything = [*parts, samples] if samples is not None else parts
        if samples is not None and is_called[row]:
            yield row, samples
        if not (everything and is_whole[row]):
            continue
        # A single part is not merged; most rows of deep trees have one.
        whole = everything[0] if len(everything) == 1 else Distribution.merged(everything)
        if not is_called[row]:
            yield row, whole
        if row:
            below.setdefault(int(profile.parents[row]), []).append(whole)


def _source(profile: Profile, name: str, base: str) -> str:
    for full in profile.distributions:
        if MetricSpec(full).base.lower() == base:
            return full
    known = ", ".join(MetricSpec(full).base for full in profile.distributions)
    have = f"samples were recorded of: {known}" if known else "this file has no samples"
    raise MetricError(
        f"metric {name!r} needs single samples of {base!r}, and {have}; only .proton files have "
        "samples of launches"
    )


def _scale(name: str, recorded: str, *, what: str, unit: str | None) -> float:
    if unit is None:
        return 1.0
    if what == "cv" or recorded not in SECONDS:
        raise MetricError(f"metric {name!r} is not a time: leave out /{unit}")
    if unit not in SECONDS:
        raise MetricError(
            f"metric {name!r}: Unsupported unit {unit}; units are {', '.join(SECONDS)}"
        )
    return SECONDS[recorded] / SECONDS[unit]

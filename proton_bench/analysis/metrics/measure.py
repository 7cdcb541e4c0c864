"""The metric of a comparison: one that every run has, in one unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proton_bench.analysis.kernels.stall_reasons import is_sample_count
from proton_bench.analysis.metrics.derive import AvailableMetrics, derive, recorded_metrics
from proton_bench.analysis.metrics.formula import SECONDS, Divisor, find_metric, parse_formula
from proton_bench.analysis.metrics.samples import is_sample_statistic
from proton_bench.analysis.run import Run
from proton_bench.errors import EmptyProfileError, MetricError, UsageError
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.steps import SAMPLED

# Default metrics, best first.
_PRIMARY = ("time", "cycles", "wall", "cpu_time", "num_samples", "count")


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric of all runs.

    Attributes:
        name: As requested, or the full name of the default.
        source: Full name of the recorded metric whose values of all rows add up to the total, ""
            for rates, averages, shares and metrics of a row alone, which do not add up.
        scale: Size of one unit of ``name`` in units of ``source``.
        unit: Unit of ``source``, or "".
    """

    name: str
    source: str = ""
    scale: float = 1.0
    unit: str = ""

    @property
    def is_additive(self) -> bool:
        """Whether changes of rows add up to the change of the total."""
        return bool(self.source)

    @property
    def has_latency(self) -> bool:
        """Whether it has a value per launch; those of samples depend on their period."""
        base = MetricSpec(self.source).base.lower()
        is_timed = base != "count" and not is_sample_count(base) and self.source not in SAMPLED
        return self.is_additive and is_timed


def find_measure(runs: Sequence[Run], name: str | None) -> Measure:
    """Return the metric to compare.

    Args:
        runs: All runs.
        name: A recorded or derived metric; None means a time or the metric closest to it.

    Raises:
        MetricError: A run lacks the metric, or it is not a number.
        UsageError: A run is empty, the metric has different units or adds up differently, or no
            metric is in all runs.
    """
    offers = [recorded_metrics(run.profile) for run in runs]
    for run, offer in zip(runs, offers, strict=True):
        if len(run.profile) == 1 or not offer.recorded:
            what = "no rows" if len(run.profile) == 1 else "no metrics"
            raise EmptyProfileError(
                f"{run.source!a} is empty: it has {what}, so there is nothing to compare; check "
                "that the run launched something"
            )
    if name is None:
        return _default(runs, offers)
    if not name.strip() or "," in name:
        raise UsageError(f"-m {name!r} is not one metric: a comparison shows one, such as time/ms")
    full = find_metric(name, offers[0].recorded)
    if full is None and is_sample_statistic(name):
        return _derived(runs, name)
    formula = None if full is not None else parse_formula(name)
    if full is not None:
        return _recorded(runs, offers, full, name=full)
    if formula is not None and formula.divisor is Divisor.NOTHING and formula.timed:
        source = find_metric(formula.source, offers[0].recorded)
        if source is None:
            raise _missing(runs[0], offers, formula.source)
        found = _recorded(runs, offers, source, name=formula.name)
        if found.unit not in SECONDS:
            raise MetricError(f"metric {source!r} is not a time, so it has no {formula.name}")
        return _in_unit(found, formula.scale)
    return _derived(runs, name)


def _in_unit(found: Measure, seconds: float) -> Measure:
    """Return a measure of times in a unit of so many seconds, which its name ends with."""
    if not found.is_additive:  # computed under its name, so it has the unit already
        return Measure(found.name, unit=found.name.rpartition("/")[2])
    scale = seconds / SECONDS[found.unit]
    # Exactly a thousand, so that whole numbers divide exactly.
    scale = float(round(scale)) if scale >= 1.0 else scale
    return Measure(found.name, found.source, scale, found.unit)


def _default(runs: Sequence[Run], offers: Sequence[AvailableMetrics]) -> Measure:
    common = [
        full
        for full in offers[0].recorded
        if all(full in offer.recorded for offer in offers)
        and all(_is_number(run, full) for run in runs)
    ]
    by_base = _by_base(common)
    found = [_by_base(offer.recorded) for offer in offers]
    best = next((by_base[base] for base in _PRIMARY if base in by_base), None)
    # If times have two units, do not fall back to the count.
    for base in _PRIMARY[: _PRIMARY.index(MetricSpec(best).base.lower()) if best else None]:
        _check_units(runs, found, base)
    if best is None and common:
        best = common[0]
    if best is None:
        raise _nothing_common(runs, offers)
    return _recorded(runs, offers, best, name=best)


def _nothing_common(runs: Sequence[Run], offers: Sequence[AvailableMetrics]) -> UsageError:
    found = [_by_base(offer.recorded) for offer in offers]
    for base in found[0]:
        _check_units(runs, found, base)
    sides = "; ".join(
        f"{run.source!a} has {_listed(offer)}" for run, offer in zip(runs, offers, strict=True)
    )
    return UsageError(f"the profiles have no metric in common: {sides}")


def _by_base(names: Sequence[str]) -> dict[str, str]:
    """Return the first of the names that have a base, by that in lower case."""
    return {MetricSpec(full).base.lower(): full for full in reversed(names)}


def _check_units(runs: Sequence[Run], found: Sequence[dict[str, str]], base: str) -> None:
    """Raise if a run has the metric in another unit than the first one.

    Args:
        runs: The runs.
        found: Metrics of each run, see `_by_base`.
        base: The metric.
    """
    first, *others = (each.get(base) for each in found)
    for run, other in zip(runs[1:], others, strict=True):
        if first is not None and other is not None and other != first:
            raise _other_unit((runs[0], first), (run, other))


def _recorded(
    runs: Sequence[Run], offers: Sequence[AvailableMetrics], full: str, *, name: str
) -> Measure:
    base = MetricSpec(full).base
    for run, offer in zip(runs, offers, strict=True):
        if full in offer.recorded:
            continue
        other = find_metric(base, offer.recorded)
        if other is None or MetricSpec(other).unit == MetricSpec(full).unit:
            raise _missing(run, offers, base)
        raise _other_unit((runs[0], full), (run, other))
    for run in runs:
        if not _is_number(run, full):
            raise MetricError(
                f"metric {full!r} is not a number in {run.source!a}, so it has no difference"
            )
    return Measure(name, _additive_source(runs, offers, full), 1.0, MetricSpec(full).unit)


def _additive_source(runs: Sequence[Run], offers: Sequence[AvailableMetrics], full: str) -> str:
    if not all(full in run.profile.columns for run in runs):
        return ""  # a metric of whole devices, not of rows
    inclusive = [full in offer.inclusive for offer in offers]
    if any(inclusive) and not all(inclusive):
        one, other = runs[inclusive.index(True)], runs[inclusive.index(False)]
        raise UsageError(
            f"metric {full!r} adds up over the tree in {one.source!a} and not in {other.source!a}: "
            "the two numbers do not mean the same"
        )
    return full if inclusive[0] else ""


def _is_number(run: Run, full: str) -> bool:
    column = run.profile.columns.get(full)
    return column is None or column.kind.is_number


def _derived(runs: Sequence[Run], name: str) -> Measure:
    for run in runs:
        try:
            found = derive(run.profile, [name])[0]
        except MetricError as error:
            raise MetricError(f"{run.source!a}: {error}") from error
        if not found.is_number:
            raise MetricError(f"metric {name!r} is not a number in {run.source!a}")
    return Measure(name.strip())


def _missing(run: Run, offers: Sequence[AvailableMetrics], base: str) -> MetricError:
    common = set(offers[0].recorded).intersection(*(offer.recorded for offer in offers[1:]))
    known = ", ".join(sorted(MetricSpec(full).base.lower() for full in common)) or "none"
    return MetricError(f"metric {base!r} is not in {run.source!a}; metrics of all runs: {known}")


def _other_unit(one: tuple[Run, str], other: tuple[Run, str]) -> UsageError:
    return UsageError(
        f"{one[0].source!a} has {one[1]!a} and {other[0].source!a} has {other[1]!a}: the units "
        "differ, so the values cannot be compared"
    )


def _listed(offer: AvailableMetrics) -> str:
    return ", ".join(ascii(MetricSpec(full).base)[1:-1] for full in offer.recorded)

"""Values of recorded and derived metrics for every row of a profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.accounting.calls import (
    CALLS,
    ENTERED,
    LAUNCHES,
    call_values,
    launch_values,
    per_call,
    with_entered,
)
from proton_bench.analysis.accounting.device_use import (
    DEVICE_WALL,
    is_device_time,
    runs_on_devices,
    with_device_use,
)
from proton_bench.analysis.accounting.host_time import (
    HOST_WALL,
    IDLE,
    OTHER_THREADS,
    other_threads,
    with_measured_times,
)
from proton_bench.analysis.kernels.scope_cycles import (
    COVERAGE,
    CYCLES,
    INSTANCES,
    LOST,
    is_scope_metric,
    scope_metric_names,
    scope_metric_values,
)
from proton_bench.analysis.kernels.stall_reasons import ALL as ALL_SAMPLES
from proton_bench.analysis.kernels.stall_reasons import is_stall_ratio, stall_names, stall_values
from proton_bench.analysis.metrics.formula import (
    SECONDS,
    SELF,
    Divisor,
    Formula,
    derivable_names,
    find_metric,
    parse_formula,
    unknown_metric,
)
from proton_bench.analysis.metrics.measured_work import (
    is_measured_work,
    measured_work_names,
    measured_work_values,
)
from proton_bench.analysis.metrics.occupancy import OCCUPANCY, with_occupancy
from proton_bench.analysis.metrics.peak import least_seconds
from proton_bench.analysis.metrics.roofline import is_roofline, roofline_names, roofline_values
from proton_bench.analysis.metrics.samples import is_sample_statistic, sample_names, sample_values
from proton_bench.analysis.metrics.unit_use import (
    is_unit_use,
    unit_use_names,
    unit_use_values,
)
from proton_bench.analysis.metrics.values import MetricValues, quotient
from proton_bench.analysis.metrics.weighted import is_part_of_mean, mean_names, mean_values
from proton_bench.analysis.why.launch_facts import with_launch_facts
from proton_bench.analysis.why.verdict import WHY
from proton_bench.errors import MetricError, PluginError, ProtonError
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.metrics.spans import is_span, spans_of
from proton_bench.model.profile import Profile
from proton_bench.plugin.others import offered_by_others

__all__ = [
    "AvailableMetrics",
    "MetricValues",
    "available_metrics",
    "default_metrics",
    "derive",
    "prepare",
    "values_of",
]

# Whether a name is one of a family of metrics, and what computes it.
_FAMILIES: tuple[
    tuple[Callable[[str], bool], Callable[[Profile, str], MetricValues | None]], ...
] = (
    (is_roofline, roofline_values),
    (is_scope_metric, scope_metric_values),
    (is_stall_ratio, stall_values),
    (is_unit_use, unit_use_values),
    (is_measured_work, measured_work_values),
    (is_sample_statistic, sample_values),
)
_OF_HOST = tuple(MetricSpec(name).base for name in (HOST_WALL, OTHER_THREADS))
_OF_SUBTREE = "of the row and all rows below it"
_OF_ROW = "of the row alone"

# Default metrics, best first.
_PRIMARY = ("time", "cycles", "wall", "cpu_time", "num_samples")


@dataclass(frozen=True, slots=True)
class AvailableMetrics:
    """The metrics of a profile.

    Attributes:
        inclusive: Full names of recorded metrics that are summed over the rows below.
        exclusive: Full names of the other recorded metrics.
        derivable: Names that can be computed from them, without ``/%``, which works for every
            number.
    """

    inclusive: tuple[str, ...]
    exclusive: tuple[str, ...]
    derivable: tuple[str, ...]

    @property
    def recorded(self) -> tuple[str, ...]:
        """All recorded names, inclusive ones first."""
        return self.inclusive + self.exclusive


def available_metrics(profile: Profile) -> AvailableMetrics:
    """Return the metrics of a profile, including those of devices; empty ones are left out."""
    profile = with_device_use(profile)
    inclusive, exclusive = _recorded(profile)
    numbers = [name for name in inclusive + exclusive if profile.columns[name].kind.is_number]
    return AvailableMetrics(inclusive, exclusive, _derivable(profile, numbers))


def _recorded(profile: Profile) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the full names of inclusive metrics, and of the others; empty ones are left out."""
    columns = [
        column
        for name, column in profile.columns.items()
        if bool(column.valid.any()) and not is_part_of_mean(name)
    ]
    inclusive = tuple(column.spec.name for column in columns if _is_inclusive(column))
    exclusive = tuple(column.spec.name for column in columns if not _is_inclusive(column))
    return inclusive, exclusive


def _derivable(profile: Profile, numbers: Sequence[str]) -> tuple[str, ...]:
    names = [*derivable_names(numbers), *roofline_names(numbers)]
    names += sample_names(profile.distributions)
    names += stall_names(profile)
    names += scope_metric_names(numbers)
    names += unit_use_names(numbers)
    names += measured_work_names(profile)
    for column in (profile.columns[name] for name in numbers):
        if column.spec.unit in SECONDS and (is_span(column) or _is_inclusive(column)):
            names += [f"{SELF}{column.spec.base.lower()}/{unit}" for unit in SECONDS]
    if find_metric("count", numbers) is not None:
        names.append(LAUNCHES)
    has_launches = any(variant.registers for variant in profile.variants)
    if has_launches and find_metric("time", numbers) is not None:
        names.append(OCCUPANCY)
    if find_metric("time", numbers) is not None:
        names.append(WHY)
    return tuple(dict.fromkeys([*names, *mean_names(profile)]))


def default_metrics(profile: Profile, *, flat: bool = False) -> tuple[str, ...]:
    """Return the default metrics: one clock with its share, self times if rows have both, calls.

    Args:
        profile: The profile.
        flat: Whether they are for a table, whose values are self values anyway.
    """
    profile = with_device_use(with_entered(with_measured_times(profile)))
    inclusive, exclusive = _recorded(profile)
    recorded = {
        MetricSpec(name).base.lower(): name
        for name in reversed(inclusive + exclusive)
        if profile.columns[name].kind.is_number
    }
    primary = _clock(profile, recorded)
    if primary is None:
        return (next(reversed(recorded)),) if recorded else ()
    unit = _fitting_unit(profile, primary) if MetricSpec(primary).unit in SECONDS else ""
    name = _name_of(profile, primary)
    found = [f"{name}/{unit}" if unit else name, f"{name}/%"]
    if not flat and _has_self_values(profile, primary):
        found.append(f"{SELF}{found[0]}")
    if primary == HOST_WALL and other_threads(profile)[0] > 0:
        found.append(f"{_name_of(profile, OTHER_THREADS)}/{unit}")
    if {CALLS, ENTERED} & recorded.keys():
        found.append(CALLS)
    base = MetricSpec(primary).base.lower()
    if primary != HOST_WALL and _is_number(profile, IDLE):
        found.append(f"{_name_of(profile, IDLE)}/{unit or _fitting_unit(profile, IDLE)}")
    if ALL_SAMPLES in recorded and base != ALL_SAMPLES:  # lines of kernels have nothing else
        found.append(f"{ALL_SAMPLES}/%")
    if INSTANCES not in recorded:
        return tuple(found)
    # Scopes inside kernels: beside the times of kernels, or alone.
    more = {CYCLES: CYCLES, INSTANCES: INSTANCES, LOST: COVERAGE}
    return (*found, *(more[each] for each in more if each in recorded and more[each] not in found))


def _clock(profile: Profile, recorded: Mapping[str, str]) -> str | None:
    """Return the metric of a table: of a run without a device one that all host rows have."""
    if not runs_on_devices(profile):
        if _is_number(profile, HOST_WALL):
            return HOST_WALL
        span = next((name for name in recorded.values() if is_span(profile.columns[name])), None)
        if span is not None and ("time" in recorded or "cycles" not in recorded):
            return span
    return next((recorded[base] for base in _PRIMARY if base in recorded), None)


def _has_self_values(profile: Profile, metric: str) -> bool:
    """Return whether a row has a value of its own beside those of the rows below it."""
    column = profile.columns[metric]
    if not (is_span(column) or _is_inclusive(column)):
        return False
    own, whole = _self_values(profile, metric), _source(profile, metric)
    return bool((own.valid & (own.values > 0) & (whole.values > own.values)).any())


def _is_number(profile: Profile, metric: str) -> bool:
    return metric in profile.columns and profile.columns[metric].kind.is_number


def _name_of(profile: Profile, metric: str) -> str:
    """Return the short name of a recorded metric; the full one if a program's own has the short."""
    short = MetricSpec(metric).base.lower()
    return short if find_metric(short, profile.columns) == metric else metric


def _fitting_unit(profile: Profile, metric: str) -> str:
    values = np.abs(_source(profile, metric).values)
    seconds = SECONDS[MetricSpec(metric).unit]
    largest = float(values[np.isfinite(values)].max(initial=0.0)) * seconds
    return "s" if largest >= 100.0 else "us" if largest < 1e-3 else "ms"


def derive(profile: Profile, metrics: Sequence[str]) -> tuple[MetricValues, ...]:
    """Return the values of the named metrics, in the order of the names.

    Args:
        profile: Variants of one kernel should have been folded before; `prepare` does first what
            needs them.
        metrics: Recorded names (any case, with or without unit) or derived ones: ``time/ms``,
            ``avg_time/us``, ``median_time/us``, ``flop8/s``, ``gbyte/s``, ``util``, ``bound``,
            ``occupancy``, ``time/%``, names of plugins.

    Raises:
        MetricError: A metric is unknown, or what it is derived from was not recorded.
    """
    return values_of(prepare(profile, metrics), metrics)


def values_of(prepared: Profile, metrics: Sequence[str]) -> tuple[MetricValues, ...]:
    """Return what `derive` does of a profile that `prepare` returned for these metrics."""
    complete = with_device_use(prepared)
    with np.errstate(all="ignore"):  # a file may hold numbers at the edge of what can be computed
        return tuple(_derive_one(complete, name) for name in metrics)


def prepare(profile: Profile, metrics: Sequence[str]) -> Profile:
    """Return the profile with what these metrics need of single variants, before they are folded.

    Samples are left out unless a metric needs them: summing rows merges them, which takes time.

    Raises:
        MetricError: A metric needs launches that the profile says nothing of.
    """
    asked = [name.strip().lower() for name in metrics]
    if any(name.removeprefix(SELF).startswith(_OF_HOST) for name in asked):
        profile = with_measured_times(profile)
    known = {*map(str.lower, profile.columns), *map(str.lower, mean_names(profile))}
    if OCCUPANCY in asked and OCCUPANCY not in known:
        profile = with_occupancy(profile)
    if WHY in asked and WHY not in known:
        profile = with_launch_facts(profile)
    if CALLS in asked:
        profile = with_entered(profile)
    if not any(map(is_sample_statistic, asked)) and not _has_no_samples(profile):
        profile = replace(profile, distributions={})
    return profile


def _has_no_samples(profile: Profile) -> bool:
    # Reading the length would inflate a file's own table.
    return isinstance(profile.distributions, MappingProxyType) and not profile.distributions


def _derive_one(profile: Profile, name: str) -> MetricValues:
    recorded = tuple(name for name in profile.columns if not is_part_of_mean(name))
    full = find_metric(name, recorded)
    if full is not None:
        # "count (inc)" is the sum over the subtree.
        is_own = name.strip().lower() == CALLS
        if full == CALLS and is_own and profile.columns[full].kind.is_number:
            return call_values(profile)
        return _recorded_values(full, profile.columns[full], profile)
    own = offered_by_others("proton_metrics").get(name.strip())
    if own is not None:
        return _plugin_values(profile, name.strip(), own)
    computed = _computed(profile, name)
    if computed is not None:
        return computed
    formula = parse_formula(name)
    if formula is None:
        raise unknown_metric(name, recorded, _derivable(profile, recorded))
    if formula.divisor is Divisor.PEAK:
        values, valid = _ratio(*least_seconds(profile), by=_time_seconds(profile))
        return MetricValues(formula.name, Aggregation.EXCLUSIVE, values, valid)
    return _evaluate(profile, formula, _source(profile, formula.source))


def _computed(profile: Profile, name: str) -> MetricValues | None:
    """Return a metric that is more than one recorded metric divided by something."""
    mean = find_metric(name, mean_names(profile))
    if mean is not None:
        return mean_values(profile, mean, name.strip())
    text = name.strip().lower()
    if text == LAUNCHES:
        return launch_values(profile)
    if text == CALLS:
        return call_values(profile)
    if text.startswith(SELF) and find_metric(text.removeprefix(SELF), profile.columns):
        return replace(_source(profile, text), name=text)
    if text == WHY:
        from proton_bench.analysis.why.verdicts import why_values  # slow to load

        return why_values(profile)
    compute = next((values for is_name, values in _FAMILIES if is_name(name)), None)
    return compute(profile, name) if compute is not None else None


def _source(profile: Profile, name: str) -> MetricValues:
    recorded = tuple(name for name in profile.columns if not is_part_of_mean(name))
    full, of_self = find_metric(name, recorded), find_metric(name.removeprefix(SELF), recorded)
    if full is None and of_self is not None and name.startswith(SELF):
        return _self_values(profile, of_self)
    if full is None:
        raise unknown_metric(name, recorded)
    found = _recorded_values(full, profile.columns[full], profile)
    if not found.is_number:
        raise MetricError(f"metric {full!r} is not a number, so nothing can be derived from it")
    return found


def _self_values(profile: Profile, metric: str) -> MetricValues:
    """Return the values of rows without those of the rows below them, named ``self_<metric>``."""
    column = profile.columns[metric]
    if is_span(column):
        spans = spans_of(profile, column)
        values, valid = spans.own, spans.has_own
    elif column.kind.is_number and _is_inclusive(column):
        values, valid = column.values, column.valid
    else:
        raise MetricError(f"metric {metric!r} does not add up over rows, so it has no self values")
    meaning = "without the rows below"
    return MetricValues(f"{SELF}{metric}", Aggregation.EXCLUSIVE, values, valid, meaning)


def _recorded_values(name: str, column: MetricColumn, profile: Profile) -> MetricValues:
    if is_span(column):
        spans = spans_of(profile, column)
        return MetricValues(name, Aggregation.INCLUSIVE, spans.whole, spans.has_whole)
    if column.kind.is_number and _is_inclusive(column):
        values = profile.inclusive(name)
        return MetricValues(name, Aggregation.INCLUSIVE, values, profile.covered(name))
    aggregation = column.spec.aggregation
    if _is_inclusive(column):
        aggregation = Aggregation.EXCLUSIVE
    if column.kind.is_number:
        return MetricValues(name, aggregation, column.values, column.valid)
    objects = np.empty(len(column), dtype=object)
    objects[:] = column.to_list()
    return MetricValues(name, aggregation, objects, column.valid)


def _is_inclusive(column: MetricColumn) -> bool:
    return column.spec.aggregation is Aggregation.INCLUSIVE and column.kind is not ValueKind.STR


def _evaluate(profile: Profile, formula: Formula, source: MetricValues) -> MetricValues:
    if formula.divisor is Divisor.TOTAL and is_device_time(source.name):
        wall = _source(profile, DEVICE_WALL)
        values, valid = _ratio(source.values * 100.0, source.valid, by=wall)
        return MetricValues(formula.name, source.aggregation, values, valid)
    if formula.divisor is Divisor.TOTAL:
        return _percent(profile, formula.name, source)
    scale = formula.scale
    if formula.timed:
        unit = MetricSpec(source.name).unit
        if unit not in SECONDS:
            raise MetricError(f"metric {source.name!r} is not a time, so it has no {formula.name}")
        scale = formula.scale / SECONDS[unit]
    if formula.divisor is Divisor.COUNT:
        return per_call(profile, source.name, formula.name, scale=scale)
    values, valid = source.values / scale, source.valid
    if formula.divisor is Divisor.SECONDS:
        values, valid = _ratio(values, valid, by=_time_seconds(profile))
    return replace(source, name=formula.name, values=values, valid=valid)


def _time_seconds(profile: Profile) -> MetricValues:
    spans = [name for name, column in profile.columns.items() if is_span(column)]
    is_timed = find_metric("time", profile.columns) is not None
    time = _source(profile, "time" if is_timed or not spans else spans[0])
    second = SECONDS.get(MetricSpec(time.name).unit, SECONDS["ns"])
    return MetricValues(time.name, time.aggregation, time.values * second, time.valid)


def _ratio(
    values: npt.NDArray[Any], valid: npt.NDArray[np.bool_], *, by: MetricValues
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    return quotient(values, by.values, valid & by.valid)


def _percent(profile: Profile, name: str, source: MetricValues) -> MetricValues:
    inclusive = source.aggregation is Aggregation.INCLUSIVE
    whole = _source(profile, source.name.removeprefix(SELF))
    if whole.aggregation is Aggregation.INCLUSIVE:
        total = float(whole.values[0])
    else:
        total = float(whole.values[whole.valid].sum())
    meaning = f"share of the whole profile: {_OF_SUBTREE if inclusive else _OF_ROW}"
    if not np.isfinite(total):  # no part of it has a share
        total = np.nan
    known = source.valid & (total != 0.0)
    shares, valid = quotient(source.values, np.full(len(known), total), known)
    return MetricValues(name, source.aggregation, shares * 100.0, valid, meaning)


def _plugin_values(profile: Profile, name: str, compute: Any) -> MetricValues:
    try:
        values = np.asarray(compute(profile), dtype=np.float64)
    except ProtonError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise PluginError(f"metric {name!r} of a plugin cannot be computed: {what}") from error
    if values.shape != (len(profile),):
        raise MetricError(
            f"metric {name!r} of a plugin gave an array of shape {values.shape}; "
            f"the profile has {len(profile)} rows"
        )
    return MetricValues(name, Aggregation.EXCLUSIVE, values, np.isfinite(values))

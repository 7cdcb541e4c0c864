"""Values of recorded and derived metrics for every row of a profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from proton_bench.analysis.accounting.calls import (
    CALLS,
    ENTERED,
    call_values,
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
    IDLE,
    OTHER_THREADS,
    other_threads,
    with_measured_times,
)
from proton_bench.analysis.kernels.scope_cycles import COVERAGE, CYCLES, INSTANCES, LOST
from proton_bench.analysis.metrics.formula import (
    AVERAGE,
    FLOPS_WIDTHS,
    SECONDS,
    SELF,
    Divisor,
    Formula,
    derivable_names,
    find_metric,
    parse_formula,
    unknown_metric,
)
from proton_bench.analysis.metrics.values import (
    DerivedMetric,
    MetricValues,
    has_self_values,
    is_inclusive,
    mean_names,
    mean_values,
    quotient,
    recorded_names,
    recorded_values,
    source_values,
    time_seconds,
)
from proton_bench.errors import MetricError, PluginError, ProtonError
from proton_bench.model.arrays import Array, Mask
from proton_bench.model.metrics.metric import Aggregation, MetricSpec
from proton_bench.model.metrics.wall_times import is_span
from proton_bench.model.profile import Profile
from proton_bench.model.steps import HOST_WALL
from proton_bench.plugin.others import offered_by_others

_OF_HOST = tuple(MetricSpec(name).base for name in (HOST_WALL, OTHER_THREADS))
_OF_SUBTREE = "of the row and all rows below it"
_OF_ROW = "of the row alone"

_SAMPLES = "num_samples"
# Default metrics, best first.
_PRIMARY = ("time", "cycles", "wall", "cpu_time", _SAMPLES)


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
    derivable: tuple[str, ...] = ()

    @property
    def recorded(self) -> tuple[str, ...]:
        """All recorded names, inclusive ones first."""
        return self.inclusive + self.exclusive


def available_metrics(profile: Profile) -> AvailableMetrics:
    """Return the metrics of a profile, including those of devices; empty ones are left out."""
    profile = with_device_use(profile)
    found = recorded_metrics(profile)
    numbers = [name for name in found.recorded if profile.columns[name].kind.is_number]
    return replace(found, derivable=_derivable(profile, numbers))


def recorded_metrics(profile: Profile) -> AvailableMetrics:
    """Return what `available_metrics` does, without the names that can be computed."""
    profile = with_device_use(profile)
    columns = [profile.columns[name] for name in recorded_names(profile)]
    columns = [column for column in columns if bool(column.valid.any())]
    return AvailableMetrics(
        tuple(column.spec.name for column in columns if is_inclusive(column)),
        tuple(column.spec.name for column in columns if not is_inclusive(column)),
    )


def _derivable(profile: Profile, numbers: Sequence[str]) -> tuple[str, ...]:
    names = list(derivable_names(numbers))
    for metric in _registry():
        names += metric.offered(profile, numbers)
    return tuple(dict.fromkeys([*names, *mean_names(profile)]))


def _registry() -> tuple[DerivedMetric, ...]:
    from proton_bench.analysis.metrics.registry import REGISTRY  # slow to load

    return REGISTRY


def _registered(profile: Profile, names: Sequence[str]) -> Iterator[DerivedMetric]:
    """Yield the entries of the registry that these names stand for."""
    derived = [text for text in names if not _is_recorded(profile, text)]
    for metric in _registry() if derived else ():
        if any(map(metric.names.fullmatch, derived)):
            yield metric


def _is_recorded(profile: Profile, text: str) -> bool:
    """Return whether a name, in lower case, is a recorded metric, maybe in another unit."""
    source, _, unit = text.rpartition("/")
    if unit in SECONDS or unit == "%":
        text = source.removeprefix(SELF).removeprefix(AVERAGE)
    recorded = (*recorded_names(profile), *mean_names(profile))
    return text == CALLS or find_metric(text, recorded) is not None


def default_metrics(profile: Profile, *, flat: bool = False) -> tuple[str, ...]:
    """Return the default metrics: one clock with its share, self times if rows have both, calls.

    Args:
        profile: The profile.
        flat: Whether they are for a table, whose values are self values anyway.
    """
    profile = with_device_use(with_entered(with_measured_times(profile)))
    recorded = {
        MetricSpec(name).base.lower(): name
        for name in reversed(recorded_metrics(profile).recorded)
        if profile.columns[name].kind.is_number
    }
    primary = _clock(profile, recorded)
    if primary is None:
        return (next(reversed(recorded)),) if recorded else ()
    unit = _fitting_unit(profile, primary) if MetricSpec(primary).unit in SECONDS else ""
    name = _name_of(profile, primary)
    found = [f"{name}/{unit}" if unit else name, f"{name}/%"]
    if not flat and has_self_values(profile, primary):
        found.append(f"{SELF}{found[0]}")
    if primary == HOST_WALL and other_threads(profile)[0] > 0:
        found.append(f"{_name_of(profile, OTHER_THREADS)}/{unit}")
    if {CALLS, ENTERED} & recorded.keys():
        found.append(CALLS)
    base = MetricSpec(primary).base.lower()
    if primary != HOST_WALL and _is_number(profile, IDLE):
        found.append(f"{_name_of(profile, IDLE)}/{unit or _fitting_unit(profile, IDLE)}")
    if _SAMPLES in recorded and base != _SAMPLES:  # lines of kernels have nothing else
        found.append(f"{_SAMPLES}/%")
    if INSTANCES not in recorded:
        return tuple(found)
    # Scopes inside kernels: beside the times of kernels, or alone.
    more = {CYCLES: CYCLES, INSTANCES: INSTANCES, LOST: COVERAGE}
    return (*found, *(more[each] for each in more if each in recorded and more[each] not in found))


def _clock(profile: Profile, recorded: Mapping[str, str]) -> str | None:
    """Return the metric of a table: of a run without a device one that all host rows have."""
    if is_timed_by_host(profile):
        return HOST_WALL
    if not runs_on_devices(profile):
        span = next((name for name in recorded.values() if is_span(profile.columns[name])), None)
        if span is not None and ("time" in recorded or "cycles" not in recorded):
            return span
    return next((recorded[base] for base in _PRIMARY if base in recorded), None)


def _is_number(profile: Profile, metric: str) -> bool:
    return metric in profile.columns and profile.columns[metric].kind.is_number


def _name_of(profile: Profile, metric: str) -> str:
    """Return the short name of a recorded metric; the full one if a program's own has the short."""
    short = MetricSpec(metric).base.lower()
    return short if find_metric(short, profile.columns) == metric else metric


def _fitting_unit(profile: Profile, metric: str) -> str:
    values = np.abs(source_values(profile, metric).values)
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
    if any(map(is_of_host, asked)):
        profile = with_measured_times(profile)
    if CALLS in asked:
        profile = with_entered(profile)
    derived = list(_registered(profile, asked))
    for metric in derived:
        if metric.prepare is not None:
            profile = metric.prepare(profile)
    if not any(metric.needs_samples for metric in derived) and not _has_no_samples(profile):
        profile = replace(profile, distributions={})
    return profile


def is_of_host(name: str) -> bool:
    """Return whether a metric, in lower case, is time of the program's threads."""
    return name.removeprefix(SELF).startswith(_OF_HOST)


def is_timed_by_host(profile: Profile) -> bool:
    """Return whether the clock of a profile is the program's main thread, as no device worked."""
    return not runs_on_devices(profile) and _is_number(profile, HOST_WALL)


def _has_no_samples(profile: Profile) -> bool:
    # Reading the length would inflate a file's own table.
    return isinstance(profile.distributions, MappingProxyType) and not profile.distributions


def _derive_one(profile: Profile, name: str) -> MetricValues:
    recorded, text = recorded_names(profile), name.strip().lower()
    full = find_metric(name, recorded)
    # "count (inc)" is the sum over the subtree.
    if full is not None and not (full == text == CALLS and profile.columns[full].kind.is_number):
        return recorded_values(profile, full)
    own = offered_by_others("proton_metrics").get(name.strip()) if full is None else None
    if own is not None:
        return _plugin_values(profile, name.strip(), own)
    if text == CALLS:
        return call_values(profile)
    mean = find_metric(name, mean_names(profile))
    if mean is not None:
        return mean_values(profile, mean, name.strip())
    for metric in _registered(profile, [text]):
        return metric.values(profile, name.strip())
    formula = parse_formula(name)
    if formula is None:
        raise unknown_metric(name, recorded, _derivable(profile, recorded))
    if formula.divisor is Divisor.PEAK:
        from proton_bench.analysis.metrics.peak import least_seconds  # as the registry

        values, valid = _ratio(*least_seconds(profile), by=time_seconds(profile))
        return MetricValues(formula.name, Aggregation.EXCLUSIVE, values, valid)
    return _evaluate(profile, formula, _source(profile, formula.source))


def _source(profile: Profile, name: str) -> MetricValues:
    """Return the values of a metric; of ``flops``, if it was not recorded, those of all widths."""
    recorded = recorded_names(profile)
    widths = [found for width in FLOPS_WIDTHS if (found := find_metric(f"flops{width}", recorded))]
    if name != "flops" or not widths or find_metric(name, recorded):
        return source_values(profile, name)
    parts = [source_values(profile, width) for width in widths]
    values = np.sum([np.where(each.valid, each.values, 0.0) for each in parts], axis=0)
    valid = np.logical_or.reduce([each.valid for each in parts])
    return replace(parts[0], name=name, values=values, valid=valid)


def _evaluate(profile: Profile, formula: Formula, source: MetricValues) -> MetricValues:
    if formula.divisor is Divisor.TOTAL and is_device_time(source.name):
        wall = source_values(profile, DEVICE_WALL)
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
        values, valid = _ratio(values, valid, by=time_seconds(profile))
    return replace(source, name=formula.name, values=values, valid=valid)


def _ratio(values: Array, valid: Mask, *, by: MetricValues) -> tuple[Array, Mask]:
    return quotient(values, by.values, valid & by.valid)


def _percent(profile: Profile, name: str, source: MetricValues) -> MetricValues:
    inclusive = source.aggregation is Aggregation.INCLUSIVE
    whole = source_values(profile, source.name.removeprefix(SELF))
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

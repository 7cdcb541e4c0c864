"""The registry: every metric that is more than a recorded one in another unit or per something.

A name belongs to the entry that matches it; listings have the entries in this order. A new one
needs its names, when a profile has it, and how it is computed: see `DerivedMetric`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from proton_bench.analysis.accounting.calls import LAUNCHES, launch_values
from proton_bench.analysis.kernels.scope_cycles import SCOPE_METRICS
from proton_bench.analysis.kernels.stall_reasons import STALL_RATIOS
from proton_bench.analysis.metrics.communication import BANDWIDTHS
from proton_bench.analysis.metrics.formula import (
    SECONDS,
    SELF,
    derivable_names,
    find_metric,
    unknown_metric,
)
from proton_bench.analysis.metrics.measured_work import MEASURED_WORK, UNIT_USE
from proton_bench.analysis.metrics.occupancy import OCCUPANCY, with_occupancy
from proton_bench.analysis.metrics.roofline import ROOFLINE
from proton_bench.analysis.metrics.samples import SAMPLE_STATISTICS
from proton_bench.analysis.metrics.shapes import SHAPES
from proton_bench.analysis.metrics.values import (
    DerivedMetric,
    MetricValues,
    is_inclusive,
    recorded_names,
    source_values,
)
from proton_bench.analysis.why.launch_facts import with_launch_facts
from proton_bench.analysis.why.verdict import WHY
from proton_bench.model.metrics.wall_times import is_span
from proton_bench.model.profile import Profile


def _self_names(profile: Profile, numbers: Sequence[str]) -> Iterator[str]:
    for column in (profile.columns[name] for name in numbers):
        if column.spec.unit in SECONDS and (is_span(column) or is_inclusive(column)):
            yield from (f"{SELF}{column.spec.base.lower()}/{unit}" for unit in SECONDS)


def _self_values(profile: Profile, name: str) -> MetricValues:
    text, recorded = name.lower(), recorded_names(profile)
    if find_metric(text.removeprefix(SELF), recorded) is None:
        offered = [each.offered(profile, recorded) for each in REGISTRY]
        raise unknown_metric(name, recorded, chain(derivable_names(recorded), *offered))
    return replace(source_values(profile, text), name=text)


def _occupancy(profile: Profile, name: str) -> MetricValues:
    raise unknown_metric(name, profile.columns)  # `with_occupancy` makes it a mean of the profile


def _why(profile: Profile, name: str) -> MetricValues:
    del name
    from proton_bench.analysis.why.verdicts import why_values  # slow to load

    return why_values(profile)


def _when_timed(profile: Profile, numbers: Sequence[str], name: str) -> tuple[str, ...]:
    del profile
    return (name,) if find_metric("time", numbers) is not None else ()


REGISTRY: tuple[DerivedMetric, ...] = (
    ROOFLINE,
    SAMPLE_STATISTICS,
    STALL_RATIOS,
    SCOPE_METRICS,
    UNIT_USE,
    MEASURED_WORK,
    BANDWIDTHS,
    DerivedMetric(re.compile(f"{SELF}[^/]+"), offered=_self_names, values=_self_values),
    DerivedMetric(
        re.compile(LAUNCHES),
        offered=lambda _, numbers: () if find_metric("count", numbers) is None else (LAUNCHES,),
        values=lambda profile, _: launch_values(profile),
    ),
    DerivedMetric(
        re.compile(OCCUPANCY),
        offered=lambda profile, numbers: (
            _when_timed(profile, numbers, OCCUPANCY)
            if any(variant.registers for variant in profile.variants)
            else ()
        ),
        values=_occupancy,
        prepare=with_occupancy,
    ),
    SHAPES,
    DerivedMetric(
        re.compile(WHY),
        offered=lambda profile, numbers: _when_timed(profile, numbers, WHY),
        values=_why,
        prepare=with_launch_facts,
    ),
)

"""Ratios of PC samples: which share of a row's samples were stalled, and for which reason.

A sample is of one warp of one scheduler. On NVIDIA GPUs it has one reason, of which ``selected``
says that the warp issued an instruction. Where its scheduler issued nothing in that cycle, CUPTI
counts it a second time, under the name of the reason with ``_not_issued``: these are the "latency
samples" that the count of all samples includes (CUPTI's guide, "Stall Reasons Mapping Table", and
https://docs.nvidia.com/cupti/api/structCUpti__ActivityPCSampling3.html). On an H200 the counts
without that ending add up to CUPTI's total of samples, so it is a part of them there as well.
Upstream's ``num_samples`` is the sum of both counts, and its ``num_stalled_samples`` the number of
samples. On AMD GPUs these names have their literal meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.metrics.values import MetricValues, quotient
from proton_bench.errors import MetricError
from proton_bench.model.metrics.metric import Aggregation, MetricSpec
from proton_bench.model.profile import Profile

__all__ = [
    "ALL",
    "ISSUED",
    "NOT_ISSUED",
    "PARTS",
    "REASON",
    "SELECTED",
    "STALLED",
    "SampleForm",
    "has_samples",
    "is_sample_count",
    "is_stall_ratio",
    "sample_form",
    "stall_names",
    "stall_values",
]

_SUFFIX = "/samples"
ALL = "num_samples"
REASON = "stalled_"
SELECTED = f"{REASON}selected"
_WITH_REASON = "num_stalled_samples"
_CUDA, _HIP = "CUDA", "HIP"
# Outcomes of a sample's cycle; the parts add up to all samples.
ISSUED, STALLED, NOT_ISSUED = "issued", "stalled", "not_issued"
PARTS = {
    ISSUED: "the sampled warp issued an instruction",
    STALLED: "it waited while another warp of its scheduler issued one",
    NOT_ISSUED: "its scheduler issued nothing: latency that no other warp hid",
}


@dataclass(frozen=True, slots=True)
class SampleForm:
    """Meaning of the sample metrics of one vendor.

    Attributes:
        total: The metric that counts samples.
        parts: Each part by the metrics that it is a sum of, with their signs.
    """

    total: str
    parts: Mapping[str, Mapping[str, int]]


_NVIDIA = SampleForm(
    _WITH_REASON,
    {
        ISSUED: {SELECTED: 1},
        STALLED: {_WITH_REASON: 2, ALL: -1, SELECTED: -1},
        NOT_ISSUED: {ALL: 1, _WITH_REASON: -1},
    },
)
_AMD = SampleForm(ALL, {ISSUED: {ALL: 1, _WITH_REASON: -1}, STALLED: {_WITH_REASON: 1}})


def sample_form(profile: Profile) -> SampleForm:
    """Return the meaning of a profile's sample metrics, by its GPUs."""
    if not find_metric(_WITH_REASON, profile.columns):
        return _AMD
    kinds = {device.kind for device in profile.devices} & {_CUDA, _HIP}
    if len(kinds) == 1:
        return _NVIDIA if _CUDA in kinds else _AMD
    full = find_metric(SELECTED, profile.columns)  # AMD GPUs select no warps
    column = None if full is None else profile.columns[full]
    is_selecting = (
        column is not None
        and column.kind.is_number
        and bool((column.values[column.valid] > 0).any())
    )
    return _NVIDIA if is_selecting else _AMD


def has_samples(profile: Profile) -> bool:
    """Return whether a profile has PC samples."""
    full = find_metric(ALL, profile.columns)
    return full is not None and profile.columns[full].kind.is_number


def is_sample_count(base: str) -> bool:
    """Return whether a metric, by its base name in lower case, counts PC samples."""
    return base in {ALL, _WITH_REASON} or base.startswith(REASON)


def is_stall_ratio(name: str) -> bool:
    """Return whether a name is a ratio of samples: ``stalled_wait/samples``."""
    return name.strip().lower().endswith(_SUFFIX)


def stall_names(profile: Profile) -> tuple[str, ...]:
    """Return the ratios that can be computed, none without samples."""
    if not has_samples(profile):
        return ()
    recorded = [
        MetricSpec(name).base.lower()
        for name, column in profile.columns.items()
        if column.kind.is_number
    ]
    form = sample_form(profile)
    parts = [
        part for part, sums in form.parts.items() if all(metric in recorded for metric in sums)
    ]
    reasons = [base for base in recorded if base.startswith(REASON)]
    return tuple(f"{name}{_SUFFIX}" for name in (*parts, *reasons))


def stall_values(profile: Profile, name: str) -> MetricValues:
    """Return part / all samples of each row, from 0 to 1, with those of the rows below.

    Raises:
        MetricError: Nothing was sampled, or the part was not recorded.
    """
    shown = name.strip().lower()
    known = stall_names(profile)
    if shown not in known:
        have = f"known are {', '.join(known)}" if known else "this file has no PC samples"
        raise MetricError(f"metric {name!r} is not a ratio of samples: {have}")
    part = shown.removesuffix(_SUFFIX)
    form = sample_form(profile)
    total = find_metric(form.total, profile.columns) or form.total
    values, valid = quotient(_part(profile, part), profile.inclusive(total), profile.covered(total))
    return MetricValues(shown, Aggregation.INCLUSIVE, values, valid, _meaning(part))


def _part(profile: Profile, part: str) -> npt.NDArray[Any]:
    """Return samples of a part, or by a metric of its own."""
    found: npt.NDArray[Any] = np.zeros(len(profile), dtype=np.int64)
    for metric, sign in sample_form(profile).parts.get(part, {part: 1}).items():
        found = found + sign * profile.inclusive(find_metric(metric, profile.columns) or metric)
    return found


def _meaning(part: str) -> str:
    said = PARTS.get(part, "")
    return f"share of the samples of the row and all rows below it: {said}" if said else ""

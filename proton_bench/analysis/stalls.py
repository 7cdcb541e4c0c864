"""Ratios of PC samples: which share of a row's samples were stalled, and for which reason.

A sample is of one warp of one scheduler. It counts for a reason where the scheduler issued an
instruction in that cycle, of this warp (``selected``) or of another one, so that the wait was
hidden; else the scheduler issued nothing, which no reason of upstream's files tells apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy.typing as npt

from proton_bench.analysis.formula import find_metric
from proton_bench.analysis.values import MetricValues, quotient
from proton_bench.errors import MetricError
from proton_bench.profile import Aggregation, MetricSpec, Profile

__all__ = [
    "ALL",
    "ISSUED",
    "NOT_ISSUED",
    "PARTS",
    "REASON",
    "SELECTED",
    "STALLED",
    "has_samples",
    "is_sample_count",
    "is_stall_ratio",
    "stall_names",
    "stall_values",
]

_SUFFIX = "/samples"
ALL = "num_samples"
REASON = "stalled_"
SELECTED = f"{REASON}selected"
_ISSUING = "num_stalled_samples"
# What became of the cycle of a sample; the three parts make up all samples.
ISSUED, STALLED, NOT_ISSUED = "issued", "stalled", "not_issued"
PARTS = {
    ISSUED: "the sampled warp issued an instruction",
    STALLED: "it waited, and another warp of its scheduler issued one",
    NOT_ISSUED: "its scheduler issued nothing: latency that no other warp hid",
}
# Each part as one metric without another.
_DIFFERENCES = {
    ISSUED: (SELECTED, ""),
    STALLED: (_ISSUING, SELECTED),
    NOT_ISSUED: (ALL, _ISSUING),
}


def has_samples(profile: Profile) -> bool:
    """Tell whether a profile has PC samples."""
    full = find_metric(ALL, profile.columns)
    return full is not None and profile.columns[full].kind.is_number


def is_sample_count(base: str) -> bool:
    """Tell whether a metric, by its base name in lower case, counts PC samples."""
    return base in {ALL, _ISSUING} or base.startswith(REASON)


def is_stall_ratio(name: str) -> bool:
    """Tell whether a name is one of ratio of samples: ``stalled_wait/samples``."""
    return name.strip().lower().endswith(_SUFFIX)


def stall_names(recorded: Iterable[str]) -> tuple[str, ...]:
    """Return the ratios that can be computed, none where nothing was sampled."""
    bases = [MetricSpec(full).base.lower() for full in recorded]
    if ALL not in bases:
        return ()
    parts = PARTS if {_ISSUING, SELECTED} <= set(bases) else ()
    reasons = [base for base in bases if base != ALL and is_sample_count(base)]
    return tuple(f"{name}{_SUFFIX}" for name in (*parts, *reasons))


def stall_values(profile: Profile, name: str) -> MetricValues:
    """Return part / all samples of each row, from 0 to 1, with those of the rows below.

    Raises:
        MetricError: Nothing was sampled, or the part was not recorded.
    """
    shown = name.strip().lower()
    known = stall_names(profile.columns)
    if shown not in known:
        have = f"known are {', '.join(known)}" if known else "this file holds no PC samples"
        raise MetricError(f"metric {name!r} is no ratio of samples: {have}")
    part = shown.removesuffix(_SUFFIX)
    total = find_metric(ALL, profile.columns) or ALL
    values, valid = quotient(_part(profile, part), profile.inclusive(total), profile.covered(total))
    return MetricValues(shown, Aggregation.INCLUSIVE, values, valid, _meaning(part))


def _part(profile: Profile, part: str) -> npt.NDArray[Any]:
    """Return samples of a part, or by a metric of its own."""
    metric, without = _DIFFERENCES.get(part, (part, ""))
    found = profile.inclusive(find_metric(metric, profile.columns) or metric)
    if without:
        found = found - profile.inclusive(find_metric(without, profile.columns) or without)
    return found


def _meaning(part: str) -> str:
    said = PARTS.get(part, "")
    return f"share of the samples of the row and all rows below it: {said}" if said else ""

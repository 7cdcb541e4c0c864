"""Ratios of PC samples: which share of a row's samples were stalled, and for which reason."""

from __future__ import annotations

from collections.abc import Iterable

from proton_bench.analysis.formula import find_metric
from proton_bench.analysis.values import MetricValues, quotient
from proton_bench.errors import MetricError
from proton_bench.profile import Aggregation, MetricSpec, Profile

__all__ = ["is_stall_ratio", "stall_names", "stall_values"]

_SUFFIX = "/samples"
_ALL = "num_samples"
_STALLED = "num_stalled_samples"
_REASON = "stalled_"


def is_stall_ratio(name: str) -> bool:
    """Tell whether a name is one of ratio of samples: ``stalled_wait/samples``."""
    return name.strip().lower().endswith(_SUFFIX)


def stall_names(recorded: Iterable[str]) -> tuple[str, ...]:
    """Return the ratios that can be computed, none where nothing was sampled."""
    bases = [MetricSpec(full).base.lower() for full in recorded]
    if _ALL not in bases:
        return ()
    return tuple(f"{b}{_SUFFIX}" for b in bases if b == _STALLED or b.startswith(_REASON))


def stall_values(profile: Profile, name: str) -> MetricValues:
    """Return part / all samples of each row, from 0 to 1, with those of the rows below.

    Raises:
        MetricError: Nothing was sampled, or the part was not recorded.
    """
    shown = name.strip().lower()
    known = stall_names(profile.columns)
    part = find_metric(shown.removesuffix(_SUFFIX), profile.columns)
    if part is None or shown not in known:
        have = f"known are {', '.join(known)}" if known else "this file holds no PC samples"
        raise MetricError(f"metric {name!r} is no ratio of samples: {have}")
    total = find_metric(_ALL, profile.columns) or _ALL
    values, valid = quotient(
        profile.inclusive(part), profile.inclusive(total), profile.covered(part)
    )
    return MetricValues(shown, Aggregation.INCLUSIVE, values, valid)

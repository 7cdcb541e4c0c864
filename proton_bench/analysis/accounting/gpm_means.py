"""How busy the units of GPUs were over the whole run, as NVIDIA's management library measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proton_bench.model.profile import Profile

__all__ = ["GpmMeans", "gpm_means"]


_MOST = 2.0**63


@dataclass(frozen=True, slots=True)
class GpmMeans:
    """Means of a device over the run.

    Attributes:
        device: Number of the device in CUDA; -1 stands for all.
        means: Percent of the unit's peak, or bytes per second, by name such as ``dram_pct``.
        sampled_ns: Length of the windows that they are from.
        missing: Why there are none, or no more; "" if nothing is missing.
    """

    device: int
    means: Mapping[str, float]
    sampled_ns: int
    missing: str


def gpm_means(profile: Profile) -> tuple[GpmMeans, ...]:
    """Return the means of each device, () if the run did not ask for them."""
    said = profile.provenance.get("gpm")
    entries = said if isinstance(said, tuple) else ()
    return tuple(_read(entry) for entry in entries if isinstance(entry, Mapping))


def _read(entry: Mapping[str, Any]) -> GpmMeans:
    # A file may contain anything.
    device, sampled_ns = entry.get("device"), entry.get("sampled_ns")
    missing, means = entry.get("missing"), entry.get("means")
    found = means.items() if isinstance(means, Mapping) else ()
    return GpmMeans(
        device=device if type(device) is int else -1,
        means={name: float(value) for name, value in found if _is_number(value)},
        sampled_ns=sampled_ns if type(sampled_ns) is int and sampled_ns >= 0 else 0,
        missing=missing if isinstance(missing, str) else "",
    )


def _is_number(value: Any) -> bool:
    return type(value) in {int, float} and math.isfinite(value) and 0 <= value < _MOST

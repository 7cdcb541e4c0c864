"""What share of its peak each unit of a GPU reaches in practice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from proton_bench.model.provenance import Provenance

__all__ = ["DEFAULTS", "SOURCE", "Ceilings"]

# Fractions that plain loops reach on a Hopper GPU: a copy of DRAM, a product of tensor cores, FMA
# and issue. Others have no measurement; they get the same as the unit most like them.
DEFAULTS: Mapping[str, float] = {
    "dram": 0.84,
    "l2": 0.84,
    "l1": 0.94,
    "shared": 0.94,
    "tensor": 0.94,
    "fp32": 0.94,
    "fp64": 0.94,
    "issue": 0.94,
}
SOURCE = "ceilings"
_LEAST = 0.3  # a calibration below this measured something else


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Fractions of the peak of each unit that this GPU reaches.

    Attributes:
        fractions: By quantity: ``dram``, ``tensor`` and so on.
        measured: The quantities that were measured on this GPU; the others are defaults.
    """

    fractions: Mapping[str, float]
    measured: frozenset[str] = frozenset()

    @classmethod
    def of(cls, provenance: Provenance) -> Ceilings:
        """Return the ceilings in the provenance of a profile, with defaults for missing ones.

        A file may contain anything: values that cannot be fractions of a peak are ignored. Several
        GPUs may have one mapping each; the lowest ceiling counts.
        """
        found: dict[str, float] = {}
        for quantity, value in _pairs(provenance.get(SOURCE)):
            if quantity in DEFAULTS:
                found[quantity] = min(value, found.get(quantity, value))
        return cls({**DEFAULTS, **found}, frozenset(found))


def _pairs(said: object, depth: int = 1) -> list[tuple[str, float]]:
    if not isinstance(said, Mapping):
        return []
    pairs: list[tuple[str, float]] = []
    for name, value in said.items():
        if isinstance(value, Mapping) and depth:
            pairs += _pairs(value, depth - 1)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
            if math.isfinite(number) and _LEAST <= number <= 1.0:
                pairs.append((str(name), number))
    return pairs

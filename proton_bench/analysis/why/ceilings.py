"""What share of its peak each unit of a GPU reaches in practice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from proton_bench.model.provenance import Provenance

__all__ = ["DEFAULTS", "SOURCE", "Ceilings"]

# What an H200 reached: a copy for DRAM, a product of FP16 matrices, chains of FMAs. The peak itself
# stands for units that nothing was measured of.
DEFAULTS: Mapping[str, float] = {
    "dram": 0.84,
    "tensor": 0.94,
    "issue": 0.94,
    "fp32": 0.94,
    "fp64": 0.94,
    "l2": 1.0,
    "l1": 1.0,
    "shared": 1.0,
}
SOURCE = "ceilings"
_MEASURED = "ceilings_measured"
_LEAST, _MOST = 0.1, 1.1  # a calibration outside of these measured something else


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
        said = provenance.get(_MEASURED)
        measured = found if said is None else said if isinstance(said, tuple) else ()
        return cls({**DEFAULTS, **found}, frozenset(each for each in found if each in measured))


def _pairs(said: object, depth: int = 1) -> list[tuple[str, float]]:
    if not isinstance(said, Mapping):
        return []
    pairs: list[tuple[str, float]] = []
    for name, value in said.items():
        if isinstance(value, Mapping) and depth:
            pairs += _pairs(value, depth - 1)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
            if math.isfinite(number) and _LEAST <= number <= _MOST:
                pairs.append((str(name), number))
    return pairs

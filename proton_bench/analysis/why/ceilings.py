"""What share of its peak each unit of a GPU reaches in practice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proton_bench.model.metrics.counter_columns import USUAL_CEILINGS, is_ceiling
from proton_bench.model.provenance import Provenance

__all__ = ["SOURCE", "Ceilings"]

SOURCE = "ceilings"
_MEASURED = "ceilings_measured"


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
            if quantity in USUAL_CEILINGS:
                found[quantity] = min(value, found.get(quantity, value))
        said = provenance.get(_MEASURED)
        measured = found if said is None else said if isinstance(said, tuple) else ()
        return cls(
            {**USUAL_CEILINGS, **found}, frozenset(each for each in found if each in measured)
        )


def _pairs(said: object, depth: int = 1) -> list[tuple[str, float]]:
    if not isinstance(said, Mapping):
        return []
    pairs: list[tuple[str, float]] = []
    for name, value in said.items():
        if isinstance(value, Mapping) and depth:
            pairs += _pairs(value, depth - 1)
        elif is_ceiling(value):
            pairs.append((str(name), float(value)))
    return pairs

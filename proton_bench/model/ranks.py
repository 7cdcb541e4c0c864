"""Present and missing ranks of a job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from proton_bench.model.origin import Origin

__all__ = ["RankGaps", "rank_gaps"]

_MOST_RANKS = 1 << 20  # of a world size, which a damaged file may claim


@dataclass(frozen=True, slots=True)
class RankGaps:
    """Present and missing ranks of a job.

    Attributes:
        world_size: Ranks of the job, 0 if unknown.
        present: Ranks with a file.
        missing: Ranks without a file.
        partial: Ranks with a file that was written before their run ended.
    """

    world_size: int = 0
    present: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    partial: tuple[int, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for the provenance of merged files, {} without known ranks."""
        if not self.present:
            return {}
        return {
            "world_size": self.world_size,
            "present": list(self.present),
            "missing": list(self.missing),
            "partial": list(self.partial),
        }


def rank_gaps(origins: Iterable[Origin]) -> RankGaps:
    """Return the gaps from the origins of files."""
    ranked = [origin for origin in origins if origin.rank is not None]
    ranks = sorted({origin.rank for origin in ranked if origin.rank is not None})
    if not ranks:
        return RankGaps()
    size = max((origin.world_size or 0 for origin in ranked), default=0)
    size = min(max(size, ranks[-1] + 1), _MOST_RANKS)
    present = set(ranks)
    return RankGaps(
        world_size=size,
        present=tuple(ranks),
        missing=tuple(rank for rank in range(size) if rank not in present),
        partial=tuple(sorted({o.rank for o in ranked if o.is_partial and o.rank is not None})),
    )

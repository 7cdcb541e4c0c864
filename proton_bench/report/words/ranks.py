"""The ranks of a job in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proton_bench.model.members import RankGaps

__all__ = ["gap_sentences", "gaps_of", "rank_text", "ranks_text"]

_MOST_SHOWN = 8


def gap_sentences(gaps: RankGaps) -> Iterator[str]:
    """Yield a sentence for each gap of a job."""
    if gaps.missing:
        yield f"{ranks_text(gaps.missing)} of {gaps.world_size} {_are(gaps.missing)} missing"
    if gaps.partial:
        yield (
            f"{ranks_text(gaps.partial)} of {gaps.world_size} {_are(gaps.partial)} partial: its "
            "file was written before the run ended"
        )


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ranks with consecutive ones joined: ``rank 3``, ``ranks 0 to 2, 5``."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1][1:] = [rank]
        else:
            runs.append([rank])
    texts = [" to ".join(map(str, run)) for run in runs[:_MOST_SHOWN]]
    if len(runs) > _MOST_SHOWN:
        texts.append(f"and {sum(_length(run) for run in runs[_MOST_SHOWN:])} more")
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(texts)


def rank_text(facts: Mapping[str, Any]) -> str:
    """Return the rank or ranks of a profile, "" if it does not say."""
    gaps = gaps_of(facts)
    if len(gaps.present) > 1:
        return f"{ranks_text(gaps.present)} of {gaps.world_size}"
    rank, size = facts.get("rank"), facts.get("world_size")
    if type(rank) is not int:
        return ""
    return f"rank {rank} of {size}" if type(size) is int else f"rank {rank}"


def gaps_of(facts: Mapping[str, Any]) -> RankGaps:
    """Return the gaps in the ranks of a merged profile, from its provenance."""
    entry = facts.get("ranks")
    if not isinstance(entry, Mapping):
        return RankGaps()
    size = entry.get("world_size")
    lists = {}
    for name in ("present", "missing", "partial"):
        ranks = entry.get(name)
        ranks = ranks if isinstance(ranks, tuple) else ()
        lists[name] = tuple(rank for rank in ranks if type(rank) is int)
    return RankGaps(size if type(size) is int else 0, **lists)


def _are(ranks: Sequence[int]) -> str:
    return "is" if len(ranks) == 1 else "are"


def _length(run: Sequence[int]) -> int:
    return run[-1] - run[0] + 1

"""The files of one job: which ranks there are, and which are missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proton_bench.errors import UsageError
from proton_bench.model.members import Member

__all__ = ["in_order"]


def in_order(members: Sequence[Member]) -> tuple[list[Member], list[str]]:
    """Return the members by rank, process and part, and messages about left-out ones.

    A partial file of a process with a complete one is left out, because it is an earlier state.

    Raises:
        UsageError: Two files are the same recording, of the same rank, or of two jobs.
    """
    kept: dict[object, Member] = {}
    notes: list[str] = []
    for member in sorted(members, key=lambda each: each.origin.is_partial):
        identity = member.origin.identity
        key: object = identity if identity is not None else member.source
        before = kept.get(key)
        if before is None:
            kept[key] = member
        elif member.origin.is_partial and not before.origin.is_partial:
            notes.append(
                f"{member.source} is left out, because {before.source} is the complete recording"
            )
        else:
            raise UsageError(
                f"{before.source} and {member.source} are the same recording and would count "
                "twice: name one of them"
            )
    _check_sizes(kept.values())
    _check_ranks(kept.values())
    return sorted(kept.values(), key=lambda each: each.origin.order), notes


def _check_ranks(members: Iterable[Member]) -> None:
    """Check that no two processes claim the same rank; its GPUs would be taken for the same.

    A process that a rank started has its process id in the name of its file.

    Raises:
        UsageError: Two do.
    """
    known: dict[int, Member] = {}
    for member in members:
        rank, process = member.origin.rank, member.origin.process_id
        if rank is None or process is None or str(process) in member.source:
            continue
        first = known.setdefault(rank, member)
        if first.origin.place != member.origin.place:
            raise UsageError(
                f"{first.source} and {member.source} both say rank {rank}, of processes "
                f"{first.origin.process_id} and {process}: merge files of one job"
            )


def _check_sizes(members: Iterable[Member]) -> None:
    """Check that no file belongs to a job of another size.

    Raises:
        UsageError: One does.
    """
    known: dict[int, str] = {}
    for member in members:
        size = member.origin.world_size
        if size is not None and member.origin.rank is not None:
            known.setdefault(size, member.source)
    if len(known) > 1:
        (one, first), (other, second) = list(known.items())[:2]
        raise UsageError(
            f"{first} is of a job of {one} ranks and {second} of one of {other}: merge files of "
            "one job"
        )

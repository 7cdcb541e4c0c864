"""Finds slow ranks of a job, scope by scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.compared_ranks import took_part
from proton_bench.errors import MetricError, UsageError
from proton_bench.formats.timeline.launched_work import is_waiting_kernel
from proton_bench.model.arrays import Floats
from proton_bench.model.frame import FrameKind
from proton_bench.model.members import Member, RankGaps, rank_gaps
from proton_bench.model.metrics.wall_times import WALL
from proton_bench.model.profile import Profile


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

    A process that a rank started has its process id in the name of its file, and no collectives.

    Raises:
        UsageError: Two do.
    """
    known: dict[int, Member] = {}
    for member in members:
        rank, process = member.origin.rank, member.origin.process_id
        if rank is None or process is None:
            continue
        if str(process) in member.source and not took_part(member.profile):
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


_TIME = "time (ns)"
_PREFERRED = (_TIME, WALL)
_LEVELS = 2  # of scopes below the root
_SCOPES = (FrameKind.SCOPE, FrameKind.TEST)
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScopeTimes:
    """One scope on all ranks; None if a rank does not have it.

    Attributes:
        path: Names from below the root down to the scope; () for everything.
        work_ns: Time of each rank without its collectives.
        waiting_ns: Time of each rank in kernels that wait for other devices (NCCL).
    """

    path: _Path
    work_ns: tuple[float | None, ...]
    waiting_ns: tuple[float | None, ...]

    @property
    def slowest(self) -> int | None:
        """Position of the rank that worked longest, None where fewer than two have the scope."""
        known = [(work, place) for place, work in enumerate(self.work_ns) if work is not None]
        return max(known, key=lambda each: (each[0], -each[1]))[1] if len(known) > 1 else None

    @property
    def excess_ns(self) -> float:
        """How much longer the slowest rank worked than the fastest one."""
        known = [work for work in self.work_ns if work is not None]
        return max(known) - min(known) if known else 0.0

    @property
    def spread_pct(self) -> float | None:
        """`excess_ns` as a share of the median rank's work, in percent; None where that is 0."""
        known = [work for work in self.work_ns if work is not None]
        middle = float(np.median(known)) if len(known) > 1 else 0.0
        return 100.0 * self.excess_ns / middle if middle > 0 else None


@dataclass(frozen=True, slots=True)
class Stragglers:
    """All scopes of a job.

    Attributes:
        metric: Which time is compared.
        ranks: The ranks, in the order of the times.
        scopes: Scopes in the order of the tree, everything first.
        gaps: Which ranks are missing.
    """

    metric: str
    ranks: tuple[int, ...]
    scopes: tuple[ScopeTimes, ...]
    gaps: RankGaps


def find_stragglers(members: Sequence[Member], *, metric: str | None = None) -> Stragglers:
    """Return the time of each scope on each rank.

    In device time (``time (ns)``), NCCL's kernels are separate: fast ranks wait there for the slow
    one, so the sum is about equal on all ranks.

    Args:
        members: Files of the ranks, with their profiles.
        metric: Name of a time, such as ``wall``; default device time, if there is any.

    Raises:
        UsageError: There are fewer than two ranks.
        MetricError: A rank does not have the metric.
    """
    by_rank = _profiles_by_rank(members)
    chosen = _metric_of(by_rank, metric)
    times = [_scope_times(profile, chosen) for profile in by_rank.values()]
    paths = dict.fromkeys(path for found in times for path in found)
    scopes = tuple(
        ScopeTimes(
            path,
            tuple(found[path][0] if path in found else None for found in times),
            tuple(found[path][1] if path in found else None for found in times),
        )
        for path in _in_tree_order(paths)
    )
    return Stragglers(chosen, tuple(by_rank), scopes, rank_gaps(m.origin for m in members))


def _profiles_by_rank(members: Sequence[Member]) -> Mapping[int, Profile]:
    found: dict[int, list[Profile]] = {}
    for member in members:
        if member.origin.rank is None or member.profile is None:
            raise UsageError(
                f"{member.source} has no rank: name files of ranks that torchrun, Slurm or MPI "
                "started"
            )
        found.setdefault(member.origin.rank, []).append(member.profile)
    if len(found) < 2:
        named = ", ".join(member.source for member in members)
        raise UsageError(
            f"--stragglers compares ranks, got only {named}: name files of two or more"
        )
    return {rank: Profile.merge(profiles) for rank, profiles in sorted(found.items())}


def _metric_of(by_rank: Mapping[int, Profile], wanted: str | None) -> str:
    """Return the full name of the metric that all ranks have.

    Raises:
        MetricError: There is none.
    """
    known = [
        name
        for name in next(iter(by_rank.values())).columns
        if name.endswith("(ns)") and all(each.has_numbers(name) for each in by_rank.values())
    ]
    if wanted is None:
        found = [name for name in _PREFERRED if name in known]
    else:
        found = [name for name in known if wanted in (name, name.partition(" (")[0])]
    if not found:
        choices = ", ".join(known) or "none"
        what = repr(wanted) if wanted is not None else "time"
        raise MetricError(f"not all ranks have the metric {what}; they have the times {choices}")
    return found[0]


def _scope_times(profile: Profile, metric: str) -> dict[_Path, tuple[float, float | None]]:
    """Return work and waiting time of the root and of each scope of the first levels."""
    totals = profile.inclusive(metric).astype(np.float64)
    waiting = _waiting(profile) if metric == _TIME else None
    depths = profile.depths()
    wanted = (depths <= _LEVELS) & np.isin(profile.kinds, _SCOPES)
    wanted[0] = True
    if metric != _TIME:
        totals[0] = totals[profile.parents == 0].sum()  # exclusive times have no sum of their own
    covered = profile.covered(metric)
    found: dict[_Path, tuple[float, float | None]] = {}
    for row in np.flatnonzero(wanted & (covered | (depths == 0))).tolist():
        path = profile.path(row)
        waits = float(waiting[row]) if waiting is not None else None
        work = float(totals[row]) - (waits or 0.0)
        before = found.get(path)
        if before is not None:  # variants, or kinds, of one name
            work += before[0]
            waits = None if waits is None else waits + (before[1] or 0.0)
        found[path] = (work, waits)
    return found


def _waiting(profile: Profile) -> Floats:
    """Return for each row the time of waiting kernels in it and below."""
    is_waiting = np.array([is_waiting_kernel(text) for text in profile.strings], dtype=np.bool_)
    own = is_waiting[profile.frames] & (profile.kinds == FrameKind.KERNEL)
    values = np.where(own, profile.columns[_TIME].values, 0)
    running = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    found: Floats = running[profile.subtree_end] - running[:-1]
    return found


def _in_tree_order(paths: Mapping[_Path, None]) -> list[_Path]:
    """Return the paths sorted so that each follows its parent, else in order."""
    below: dict[_Path, list[_Path]] = {}
    for path in paths:
        if path:
            above = path[:-1]
            while above not in paths:
                above = above[:-1]
            below.setdefault(above, []).append(path)
    ordered: list[_Path] = []
    todo: list[_Path] = [()]
    while todo:
        path = todo.pop()
        ordered.append(path)
        todo.extend(reversed(below.get(path, [])))
    return ordered

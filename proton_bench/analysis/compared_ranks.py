"""Compares the collectives of the ranks of a job: who came late, and what it did meanwhile.

The file of a rank has a sample of the calls in which it took part, numbered as on other ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from statistics import median

import numpy as np

from proton_bench.analysis.accounting.host_time import IMPORTS, own_line_times
from proton_bench.analysis.collectives import (
    KEY,
    Operation,
    is_collective,
    mappings,
    meets,
    number_of,
)
from proton_bench.analysis.metrics.values import own_numbers
from proton_bench.analysis.naming.frame_names import Places, frame_texts
from proton_bench.model.members import Member
from proton_bench.model.profile import Profile

_OF_TORCH = "/torch/distributed/"  # where ranks wait for each other
_FEWEST = 3  # calls
_EXPLAINS = 0.3  # of what a rank was late: else the place says nothing
_MOST_OPERATIONS = 64

_Times = tuple[int, int]  # arrival and end


@dataclass(slots=True)
class _Shared:
    """An operation on all ranks."""

    size: int = 0
    calls: int = 0
    bytes: float = 0.0
    from_start: bool = True
    ranks: set[int] = field(default_factory=set)
    times: dict[int, dict[int, _Times]] = field(default_factory=dict)  # by number, then rank


def with_collectives(merged: Profile, members: Sequence[Member]) -> Profile:
    """Return the merged profile with what its members say of collectives together."""
    operations = compare_collectives(members)
    facts = merged.provenance.to_plain()
    facts.pop(KEY, None)
    if operations:
        facts[KEY] = {"operations": [asdict(each) for each in operations]}
    return replace(merged, provenance=type(merged.provenance)(facts))


def compare_collectives(members: Sequence[Member]) -> tuple[Operation, ...]:
    """Return the operations of a job, with what its ranks waited for.

    Args:
        members: Files of ranks, with their profiles; others are left out.
    """
    by_rank = {
        member.origin.rank: member
        for member in reversed(members)  # of several parts of a rank the first
        if member.origin.rank is not None and took_part(member.profile)
    }
    shared: dict[tuple[str, str], _Shared] = {}
    for rank, member in by_rank.items():
        _collect(shared, rank, member.profile)
    offsets, error_ns = _clock_offsets(shared, by_rank)
    places = _Places(by_rank)
    found = [
        _compared(name, group, each, offsets=offsets, error_ns=error_ns, places=places)
        for (name, group), each in shared.items()
    ]
    found.sort(key=lambda each: -each.time_ns * each.calls)
    return tuple(found[:_MOST_OPERATIONS])


def took_part(profile: Profile | None) -> bool:
    """Return whether a process itself was a rank of a job, not only started by one."""
    facts = profile.provenance.get(KEY) if profile is not None else None
    return isinstance(facts, Mapping) and "kinds" in facts


def _collect(shared: dict[tuple[str, str], _Shared], rank: int, profile: Profile | None) -> None:
    """Add the calls of a rank."""
    facts = profile.provenance.get(KEY) if profile is not None else None
    if not isinstance(facts, Mapping):
        return
    known: list[_Shared] = []
    for kind in mappings(facts.get("kinds")):
        each = shared.setdefault((str(kind.get("name")), str(kind.get("group"))), _Shared())
        each.size = max(each.size, number_of(kind.get("ranks")))
        each.calls = max(each.calls, number_of(kind.get("calls")))
        ended = max(number_of(kind.get("ended")), 1)
        each.bytes = max(each.bytes, number_of(kind.get("bytes")) / ended)
        each.from_start &= facts.get("from_start") is True
        known.append(each)
    calls = facts.get("calls")
    names = ("kind", "number", "start_ns", "took_ns")
    columns = [calls.get(name) for name in names] if isinstance(calls, Mapping) else []
    is_whole = bool(columns) and all(isinstance(each, tuple) for each in columns)
    for row in zip(*columns, strict=False) if is_whole else ():
        place, number, start_ns, took_ns = map(number_of, row)
        if place < len(known):
            known[place].ranks.add(rank)
            known[place].times.setdefault(number, {})[rank] = (start_ns, start_ns + took_ns)


def _clock_offsets(
    shared: Mapping[tuple[str, str], _Shared], by_rank: Mapping[int, Member]
) -> tuple[dict[int, float], float | None]:
    """Return what to add to the times of each rank, and how exact that is.

    CLOCK_MONOTONIC is one clock on a host. Those of several are aligned by the ends of calls, which
    come at about the same time on all ranks.
    """
    hosts = {rank: member.origin.host for rank, member in by_rank.items()}
    if len(set(hosts.values())) <= 1:
        return dict.fromkeys(hosts, 0.0), None
    reference = next(iter(hosts.values()))
    differences: dict[str, list[float]] = {}
    meeting = [each for (name, _), each in shared.items() if meets(name)]
    for times in chain.from_iterable(each.times.values() for each in meeting):
        own = [end for rank, (_, end) in times.items() if hosts[rank] == reference]
        others = [rank for rank in times if hosts[rank] != reference] if own else []
        for rank in others:
            differences.setdefault(hosts[rank], []).append(median(own) - times[rank][1])
    offsets = {host: median(values) for host, values in differences.items()}
    errors = [
        median(abs(value - offsets[host]) for value in values)
        for host, values in differences.items()
    ]
    known = {r: offsets.get(h, 0.0) for r, h in hosts.items() if h in offsets or h == reference}
    return known, max(errors, default=0.0)


def _compared(
    name: str,
    group: str,
    shared: _Shared,
    *,
    offsets: Mapping[int, float],
    error_ns: float | None,
    places: _Places,
) -> Operation:
    ranks = tuple(sorted(rank for rank in shared.ranks if rank in offsets))
    took = [end - start for times in shared.times.values() for start, end in times.values()]
    operation = Operation(
        name=name,
        group=group,
        size=shared.size,
        calls=shared.calls,
        bytes=shared.bytes,
        time_ns=float(median(took)) if took else 0.0,
    )
    # Without a common clock only numbers tell calls apart: they must count from the first one.
    are_numbered = error_ns is None or shared.from_start
    if len(ranks) < 2 or not group or not meets(name) or not are_numbered:
        return operation
    shift = np.array([offsets[rank] for rank in ranks])
    table = np.array(
        [
            [times[rank] for rank in ranks]
            for times in shared.times.values()
            if all(rank in times for rank in ranks)
        ],
        dtype=np.float64,
    ).reshape(-1, len(ranks), 2)
    starts, ends = table[:, :, 0] + shift, table[:, :, 1] + shift
    # Else the numbers of the ranks are not of the same call: one began to record later.
    slack = 0.0 if error_ns is None else 2 * error_ns
    are_same = starts.max(axis=1, initial=-np.inf) <= ends.min(axis=1, initial=np.inf) + slack
    starts, ends = starts[are_same], ends[are_same]
    if len(starts) < _FEWEST:
        return operation
    scale = max(shared.calls / len(starts), 1.0)
    order = np.sort(starts, axis=1)
    last, last_ns = starts.argmax(axis=1), order[:, -1]
    transfers = np.maximum(ends - last_ns[:, None], 0.0)
    are_together = last_ns - order[:, 0] <= transfers.max(axis=1)
    longest = transfers.argmax(axis=1)[are_together]
    late_by = last_ns - np.median(order[:, :-1], axis=1)
    late_ns = tuple(
        float(np.median(late_by[last == at])) if (last == at).any() else 0.0
        for at in range(len(ranks))
    )
    lost = (last_ns - order[:, -2]) * len(ranks)
    positions = range(len(ranks))
    others = np.stack([np.median(np.delete(transfers, at, axis=1), axis=1) for at in positions], 1)
    ratios = np.divide(transfers, others, out=np.ones_like(transfers), where=others > 0)
    return Operation(
        name=name,
        group=group,
        size=shared.size or len(ranks),
        calls=shared.calls,
        bytes=shared.bytes,
        time_ns=float(np.median(ends - starts)),
        ranks=ranks,
        compared=len(starts),
        transfer_ns=float(np.median(transfers)),
        waited_ns=tuple(((last_ns[:, None] - starts).sum(axis=0) * scale).tolist()),
        late=tuple(int((last == at).sum()) for at in positions),
        late_ns=late_ns,
        lost_ns=tuple(float(lost[last == at].sum() * scale) for at in positions),
        together=int(are_together.sum()),
        slowness=tuple(np.median(ratios[are_together], axis=0).tolist())
        if are_together.sum() >= _FEWEST
        else (1.0,) * len(ranks),
        slowest=tuple(int((longest == at).sum()) for at in positions),
        places=tuple(
            places.of(rank, late_ns[at], late_ns[at] * int((last == at).sum()) * scale)
            for at, rank in enumerate(ranks)
        ),
        clock_error_ns=error_ns,
    )


@dataclass(frozen=True, slots=True)
class _Spent:
    """Time at a place, in ns, and how often it was entered; infinite where that is unknown."""

    time_ns: float = 0.0
    calls: float = np.inf


class _Places:
    """Where ranks spent more time than the others did."""

    def __init__(self, by_rank: Mapping[int, Member]) -> None:
        self._profiles = {
            rank: member.profile for rank, member in by_rank.items() if member.profile is not None
        }
        self._spent = {
            rank: {**_work_times(each), **_line_times(each)}
            for rank, each in self._profiles.items()
        }

    def of(self, rank: int, late_ns: float, total_ns: float) -> str:
        """Return the line of code, or else the work, that explains most of what a rank was late.

        Args:
            rank: The rank.
            late_ns: How late it was in a call: what was entered once explains no more.
            total_ns: How late it was in all calls.
        """
        others = [each for other, each in self._spent.items() if other != rank]
        explained = {}
        for place, spent in self._spent[rank].items():
            usual = median(each.get(place, _Spent()).time_ns for each in others)
            explained[place] = min(spent.time_ns - usual, spent.calls * late_ns, total_ns)
        place = max(explained, key=lambda each: explained[each], default="")
        if not explained.get(place, 0.0) >= _EXPLAINS * max(total_ns, 1.0):
            return ""
        places = Places.of(self._profiles[rank].provenance)
        return frame_texts([place], places).get(place, place)


def _line_times(profile: Profile) -> dict[str, _Spent]:
    found = own_line_times(profile, by="wall", leave_out=_OF_TORCH)
    return {line: _Spent(float(time)) for line, time in found.items() if line != IMPORTS}


def _work_times(profile: Profile) -> dict[str, _Spent]:
    """Return the own times of rows by path, without collectives."""
    times, counts = own_numbers(profile, "time"), own_numbers(profile, "count")
    found: dict[str, _Spent] = {}
    for row in np.flatnonzero(times > 0).tolist():
        path = profile.path(row)
        if not any(is_collective(name) for name in path):
            text = " › ".join(path)
            before = found.get(text, _Spent(calls=0.0))
            time_ns = before.time_ns + float(times[row])
            found[text] = _Spent(time_ns, before.calls + float(counts[row]))
    return found

"""Collectives of a rank or of merged ranks: how fast they were, and who came late."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from proton_bench.formats.timeline.launched_work import is_waiting_kernel
from proton_bench.model.profile import Profile

KEY = "collectives"
_MEETING = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier")
_NS = 10**9


@dataclass(frozen=True, slots=True)
class Operation:
    """Calls of one operation in one group of ranks.

    Attributes:
        name: Backend and operation, such as ``gloo:all_reduce``.
        group: Name of the group, "" if unknown.
        size: Ranks in the group, 0 if unknown.
        calls: Calls of a rank, whether listed or not.
        bytes: What a rank gave in a call on average, 0 if unknown.
        time_ns: Time of a call from the arrival of the rank to its end; median of merged ranks,
            else mean.
        ranks: The ranks that were compared, in the order of what follows; empty for one rank.
        compared: Calls that all of these have.
        transfer_ns: Time from the last arrival to the end, median.
        waited_ns: Time that each rank waited for the last one, in all calls.
        late: In how many of the compared calls each rank came last.
        late_ns: How much later than the median of the others, where it came last; median.
        lost_ns: How much earlier all others could have gone on, had it not been last; all calls.
        together: Calls of these to which all ranks came within the time of the transfer.
        slowness: Time from the last arrival to the end in these, relative to the median of the
            others; median.
        slowest: In how many of these each rank ended last.
        places: Where each rank spent more time than the others did, "" if that is not known.
        clock_error_ns: How well the clocks of several hosts were aligned; None for one host.
    """

    name: str
    group: str = ""
    size: int = 0
    calls: int = 0
    bytes: float = 0.0
    time_ns: float = 0.0
    ranks: tuple[int, ...] = ()
    compared: int = 0
    transfer_ns: float = 0.0
    waited_ns: tuple[float, ...] = ()
    late: tuple[int, ...] = ()
    late_ns: tuple[float, ...] = ()
    lost_ns: tuple[float, ...] = ()
    together: int = 0
    slowness: tuple[float, ...] = ()
    slowest: tuple[int, ...] = ()
    places: tuple[str, ...] = field(default=())
    clock_error_ns: float | None = None

    @property
    def algorithm_bandwidth(self) -> float | None:
        """Bytes of the whole operation per second, without waiting where that is known."""
        time_ns = self.transfer_ns if self.compared else self.time_ns
        whole = self.bytes * whole_factor(self.name, self.size)
        return whole / time_ns * _NS if whole > 0 and time_ns > 0 and self.size else None

    @property
    def bus_bandwidth(self) -> float | None:
        """The same by the bytes that each link carries, comparable between operations and sizes."""
        rate = self.algorithm_bandwidth
        return None if rate is None else rate * bus_factor(self.name, self.size)


def meets(name: str) -> bool:
    """Return whether a rank can end an operation only when all ranks have come."""
    return _MEETING.search(name) is not None


def whole_factor(name: str, ranks: int) -> int:
    """Return bytes of an operation / bytes that a rank gives."""
    return ranks if re.search("all_?gather|:gather", name) else 1


def bus_factor(name: str, ranks: int) -> float:
    """Return bytes on each link / bytes of the operation, as nccl-tests count them."""
    if re.search("all_?reduce", name):
        return 2.0 * (ranks - 1) / ranks
    if meets(name) or "gather" in name or "scatter" in name:
        return (ranks - 1) / ranks
    return 1.0


def operations_of(profile: Profile) -> tuple[Operation, ...]:
    """Return the operations of a rank or of merged ranks, those with the most time first."""
    whole = profile if profile.whole is None else profile.whole
    facts = whole.provenance.get(KEY)
    found: list[Operation] = []
    if isinstance(facts, Mapping):
        found.extend(filter(None, map(_merged, mappings(facts.get("operations")))))
        for each in mappings(facts.get("kinds")):
            ended = max(number_of(each.get("ended")), 1)
            operation = Operation(
                name=str(each.get("name")),
                group=str(each.get("group")),
                size=number_of(each.get("ranks")),
                calls=number_of(each.get("calls")),
                bytes=number_of(each.get("bytes")) / ended,
                time_ns=number_of(each.get("total_ns")) / ended,
            )
            found.append(operation)
    return tuple(sorted(found, key=lambda each: -each.time_ns * each.calls))


def _merged(facts: Mapping[str, Any]) -> Operation | None:
    """Return an operation as it was written, None where it is damaged."""
    known = {each.name: facts[each.name] for each in fields(Operation) if each.name in facts}
    try:
        operation = Operation(**known)
        lists: list[tuple[Any, ...]] = [operation.waited_ns, operation.late, operation.late_ns]
        lists += [operation.lost_ns, operation.slowness, operation.slowest, operation.places]
        is_whole = all(len(each) == len(operation.ranks) for each in lists)
        numbers: list[float] = [operation.size, operation.calls, operation.bytes, operation.time_ns]
        numbers += [operation.compared, operation.transfer_ns, *operation.lost_ns]
        return operation if is_whole and all(each >= 0 for each in numbers) else None
    except TypeError:
        return None


def mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings of a list in a file; nothing if the value is not a list."""
    if isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, Mapping))


def number_of(value: Any) -> int:
    """Return a number in a file that is not negative, 0 for anything else."""
    return value if type(value) is int and 0 <= value < 2**63 else 0


def is_collective(name: str) -> bool:
    """Return whether a row of that name is a collective, or the kernel of one."""
    return name.startswith(("gloo:", "nccl:", "c10d::")) or is_waiting_kernel(name)

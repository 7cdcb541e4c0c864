"""Which process of a job recorded a file, and which part of its run the file holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["ApartBy", "Origin", "is_partial_name"]

_RANK = re.compile(r"\.rank(\d{1,9})(?=\.)")
_PART = re.compile(r"\.part_(\d{1,9})(?=\.)")
_PROCESS = re.compile(r"\.pid(\d{1,9})(?=\.)")
# With the number of the process where another one has written one of the same name.
_PARTIAL = re.compile(r"\.partial(\.\d{1,9}(-\d{1,2})?)?\.[^.]+(\.gz)?\Z")
_NUMBERS = range(2**31)
_TIMES = range(1, 2**63)


class ApartBy(StrEnum):
    """What gets a row of its own on top of a merged tree."""

    NOTHING = "nothing"
    RANK = "rank"
    HOST = "host"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class Origin:
    """What a file says of the process that it comes from; None and "" where it does not.

    Attributes:
        host: Name of the machine.
        process_id: Number of the process there.
        rank: Place of the process in its job.
        local_rank: Place among the ranks of its host.
        world_size: Number of ranks of the job.
        part: Number of the phase that the file holds, for files of single phases.
        start_time_ns: When the session began, unix time.
        is_partial: The run had not ended when the file was written.
    """

    host: str = ""
    process_id: int | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    part: int | None = None
    start_time_ns: int | None = None
    is_partial: bool = False

    @classmethod
    def of(cls, facts: Mapping[str, Any], file_name: str, *, is_partial: bool = False) -> Origin:
        """Return what provenance tells, and the name of the file where that says nothing.

        Args:
            facts: Provenance of the file.
            file_name: Its name, which may hold ``.rank<N>``, ``.pid<N>`` and ``.part_<N>``.
            is_partial: What the file's content says about its end.
        """
        host = facts.get("host")
        return cls(
            host=host if isinstance(host, str) else "",
            process_id=_first(_number(facts.get("pid")), _matched(_PROCESS, file_name)),
            rank=_first(_number(facts.get("rank")), _matched(_RANK, file_name)),
            local_rank=_number(facts.get("local_rank")),
            world_size=_number(facts.get("world_size")),
            part=_matched(_PART, file_name),
            start_time_ns=_number(facts.get("start_time_ns"), _TIMES),
            is_partial=is_partial or is_partial_name(file_name),
        )

    @property
    def identity(self) -> tuple[str, int, int, int | None] | None:
        """What no two recordings have in common, None where the file does not tell enough."""
        if self.process_id is None or self.start_time_ns is None:
            return None
        return self.host, self.process_id, self.start_time_ns, self.part

    @property
    def place(self) -> tuple[str, int | None, int | None]:
        """Which process it is: host, rank, and the number of the process."""
        return self.host, self.rank, self.process_id

    @property
    def order(self) -> tuple[float, str, int, int, int]:
        """Ranks in their order, processes of a rank as they began, then their parts."""
        return (
            float("inf") if self.rank is None else self.rank,
            self.host,
            self.start_time_ns or 0,
            self.process_id or 0,
            -1 if self.part is None else self.part,
        )


def is_partial_name(file_name: str) -> bool:
    """Tell whether a file is called ``NAME.partial<suffix>``: its run may not have ended.

    So is ``NAME.partial.1234<suffix>``, of process 1234 where two recorded to one name.
    """
    return _PARTIAL.search(file_name) is not None


def _first(recorded: int | None, named: int | None) -> int | None:
    return recorded if recorded is not None else named


def _number(value: Any, allowed: range = _NUMBERS) -> int | None:
    return value if type(value) is int and value in allowed else None


def _matched(pattern: re.Pattern[str], file_name: str) -> int | None:
    found = pattern.search(file_name)
    return int(found[1]) if found is not None else None

"""The process that recorded a file, and the part of its run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_RANK = re.compile(r"\.rank(\d{1,9})(?=\.)")
_PART = re.compile(r"\.part_(\d{1,9})(?=\.)")
_PROCESS = re.compile(r"\.pid(\d{1,9})(?=\.)")
# With the process id if another process used the same name.
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
    """Facts of a file about its process; None and "" if missing.

    Attributes:
        host: Name of the machine.
        process_id: Its process id there.
        rank: Its rank in the job.
        local_rank: Its rank on the host.
        world_size: Number of ranks of the job.
        part: Number of the phase, for files of single phases.
        start_time_ns: When the session began, unix time.
        is_partial: The file was written before the run ended.
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
        """Return the origin from the provenance, else from the name of the file.

        Args:
            facts: Provenance of the file.
            file_name: Its name, which may contain ``.rank<N>``, ``.pid<N>`` and ``.part_<N>``.
            is_partial: Whether the file's content says that it is partial.
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
        """A key of the recording, None if the file does not have enough facts."""
        if self.process_id is None or self.start_time_ns is None:
            return None
        return self.host, self.process_id, self.start_time_ns, self.part

    @property
    def place(self) -> tuple[str, int | None, int | None]:
        """The process: host, rank and process id."""
        return self.host, self.rank, self.process_id

    @property
    def order(self) -> tuple[float, str, int, int, int]:
        """Sort key: ranks, processes of a rank by start, then parts."""
        return (
            float("inf") if self.rank is None else self.rank,
            self.host,
            self.start_time_ns or 0,
            self.process_id or 0,
            -1 if self.part is None else self.part,
        )


def is_partial_name(file_name: str) -> bool:
    """Return whether a file is called ``NAME.partial<suffix>``: its run may not have ended.

    This includes ``NAME.partial.1234<suffix>``, of process 1234 if two used one name.
    """
    return _PARTIAL.search(file_name) is not None


def _first(recorded: int | None, named: int | None) -> int | None:
    return recorded if recorded is not None else named


def _number(value: Any, allowed: range = _NUMBERS) -> int | None:
    return value if type(value) is int and value in allowed else None


def _matched(pattern: re.Pattern[str], file_name: str) -> int | None:
    found = pattern.search(file_name)
    return int(found[1]) if found is not None else None

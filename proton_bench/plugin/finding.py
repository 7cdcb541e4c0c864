"""What an examination of this machine finds: plain data that a backend may add to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Status"]


class Status(StrEnum):
    """How a finding is to be read."""

    OK = "ok"
    NOTE = "note"
    ABSENT = "absent"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: What was looked at; unique in its section.
        status: OK and NOTE: usable; ABSENT: not here, which may be intended; PROBLEM: to be mended.
        value: What was found, in one line: a version, a path, a setting.
        advice: How to mend it or what follows from it; empty where there is nothing to do.
        provides: Names that ``--require`` takes and that this finding answers.
    """

    name: str
    status: Status
    value: str
    advice: str = ""
    provides: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether what was looked at can be used."""
        return self.status in (Status.OK, Status.NOTE)

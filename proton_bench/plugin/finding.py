"""Findings of a check of this machine: plain data that backends can add."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Status"]


class Status(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    NOTE = "note"
    ABSENT = "absent"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing.

    Attributes:
        name: Its name; unique in its section.
        status: OK and NOTE: usable; ABSENT: missing, perhaps intended; PROBLEM: should be fixed.
        value: What was found, in one line: a version, a path, a setting.
        advice: How to fix it, or its consequences; empty if there is nothing to do.
        provides: Names for ``--require`` that this finding decides.
    """

    name: str
    status: Status
    value: str
    advice: str = ""
    provides: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether the checked thing is usable."""
        return self.status in (Status.OK, Status.NOTE)

"""What an examination finds: plain data, printed by a report and judged by ``--require``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Diagnosis", "Finding", "Section", "Status"]


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


@dataclass(frozen=True, slots=True)
class Section:
    """Findings that belong together."""

    name: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings of one examination."""

    sections: tuple[Section, ...]

    def findings(self) -> Iterator[Finding]:
        """Yield every finding in the order of the report."""
        for section in self.sections:
            yield from section.findings

    @property
    def requirable(self) -> tuple[str, ...]:
        """Names that may be required, sorted."""
        return tuple(sorted({name for finding in self.findings() for name in finding.provides}))

    def missing(self, names: Iterable[str]) -> tuple[Finding, ...]:
        """Return for each required name that is not usable the finding that says why.

        A name that nothing here is called by gets a finding of its own.
        """
        return tuple(finding for name in names if not (finding := self._answer(name)).usable)

    def _answer(self, name: str) -> Finding:
        answers = [finding for finding in self.findings() if name in finding.provides]
        if not answers:
            known = ", ".join(self.requirable)
            return Finding(name, Status.ABSENT, "nothing has this name", f"choose from: {known}")
        # Of several things with one name (a backend and an extra) one that is missing decides.
        return next((finding for finding in answers if not finding.usable), answers[0])

"""Findings of an examination: plain data, printed by a report and checked by ``--require``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


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
        """Names that `--require` accepts, sorted."""
        return tuple(sorted({name for finding in self.findings() for name in finding.provides}))

    def missing(self, names: Iterable[str]) -> tuple[Finding, ...]:
        """Return the finding that says why for each required name that is not usable.

        An unknown name gets its own finding.
        """
        return tuple(finding for name in names if not (finding := self._answer(name)).usable)

    def _answer(self, name: str) -> Finding:
        answers = [finding for finding in self.findings() if name in finding.provides]
        if not answers:
            known = ", ".join(self.requirable)
            return Finding(name, Status.ABSENT, "nothing has this name", f"choose from: {known}")
        # If several things have one name (a backend and an extra), a missing one decides.
        return next((finding for finding in answers if not finding.usable), answers[0])

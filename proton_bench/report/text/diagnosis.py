"""A diagnosis as a table and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.table import Table
from rich.text import Text

from proton_bench.diagnosis.finding import Diagnosis, Finding, Section, Status
from proton_bench.report.words.edge import DIM, HEADING, WARNING
from proton_bench.support.text import visible

_VERSION = (1, 0)
_MIN_VALUE_WIDTH = 20
_MOST_WIDTH = 100
_STYLES = {
    Status.OK: Style(color="green"),
    Status.NOTE: Style(color="cyan"),
    Status.ABSENT: DIM,
    Status.PROBLEM: WARNING,
}


@dataclass(frozen=True, slots=True)
class DiagnosisReport:
    """A rich renderable: one table per section, then the problems and how to fix them."""

    diagnosis: Diagnosis

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the tables; lines are folded at the same width in a terminal and a pipe."""
        width = min(options.max_width, _MOST_WIDTH) if console.is_terminal else _MOST_WIDTH
        names = max((len(visible(each.name)) for each in self.diagnosis.findings()), default=0)
        for section in self.diagnosis.sections:
            yield Text(section.name, style=HEADING)
            table = _table(section, names, width)
            # Without a terminal rich would take 80 columns.
            yield from console.render(table, options.update(width=width))
            yield Text()
        yield Text(_summary(self.diagnosis))


def diagnosis_document(diagnosis: Diagnosis, required: Sequence[str]) -> dict[str, Any]:
    """Return what ``proton doctor --json`` prints.

    Args:
        diagnosis: What was found.
        required: Names given with ``--require``.
    """
    return {
        "schema": "proton_bench.doctor",
        "version": _VERSION,
        "required": {name: not diagnosis.missing([name]) for name in required},
        "problems": sum(each.status is Status.PROBLEM for each in diagnosis.findings()),
        "sections": [
            {"name": section.name, "findings": [_plain(each) for each in section.findings]}
            for section in diagnosis.sections
        ],
    }


def _plain(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "status": finding.status.value,
        "value": finding.value,
        "advice": finding.advice,
        "provides": list(finding.provides),
    }


def _table(section: Section, names: int, width: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    states = max(map(len, Status))
    table.add_column(min_width=names + 2, no_wrap=True)
    table.add_column(min_width=states, no_wrap=True)
    lines = [line for finding in _gathered(section.findings) for line in _lines(finding)]
    longest = max((len(line[2]) for line in lines), default=0)
    room = max(width - names - states - 6, _MIN_VALUE_WIDTH)
    table.add_column(width=min(longest, room), overflow="fold")
    for line in lines:
        table.add_row(*line)
    return table


def _gathered(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings, those that say the same words of different things as one."""
    names: dict[tuple[Status, str], list[str]] = {}
    for each in findings:
        if not each.advice and each.value.replace(" ", "").isalpha():
            names.setdefault((each.status, each.value), []).append(each.name)
    found = {}
    for each in findings:
        own = [] if each.advice else names.get((each.status, each.value), [])
        is_one = len(own) > 1
        key = (each.status, each.value) if is_one else each.name
        found[key] = replace(each, name=each.value, value=", ".join(own)) if is_one else each
    return list(found.values())


def _lines(finding: Finding) -> Iterator[tuple[Text, Text, Text]]:
    yield (
        Text(f"  {visible(finding.name)}"),
        Text(finding.status.value, style=_STYLES[finding.status]),
        Text(visible(finding.value)),
    )
    if finding.advice:
        yield Text(), Text(), Text(visible(finding.advice), style=DIM)


def _summary(diagnosis: Diagnosis) -> str:
    names = [visible(each.name) for each in diagnosis.findings() if each.status is Status.PROBLEM]
    if not names:
        return "No problems found."
    return f"{len(names)} {'problem' if len(names) == 1 else 'problems'}: {', '.join(names)}"

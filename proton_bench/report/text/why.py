"""Why a run is slow: one screen, everything about one row, or a JSON document."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, takewhile
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.why.answer import Answer, WhyRow
from proton_bench.analysis.why.verdict import Finding, Verdict
from proton_bench.model.frame import KIND_NAMES
from proton_bench.report.words.edge import (
    DIM,
    HEADING,
    WARNING,
    edge_of,
    fitting,
    fitting_path,
    prose,
)
from proton_bench.support.text import visible
from proton_bench.support.units import count_text, duration_text, share_text

_MOST_FINDINGS = 3
_MOST_ROWS = 3
_FINDING_AT = 24
_ROW_AT = 10
_ARROW = " › "
_LEAST_NAME = 24
_MAX_TEXT = 400
_BYTES_OF_TOKEN = 3


@dataclass(frozen=True, slots=True, eq=False)
class WhyReport:
    """A rich renderable of an answer about the whole run.

    Attributes:
        answer: What to show.
        source: Name of the file.
        losses: What is missing from the profile, a sentence each.
    """

    answer: Answer
    source: str
    losses: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the sentence, the findings and the rows; only a terminal cuts lines."""
        edge = edge_of(console, options)
        answer = self.answer
        word = "run" if answer.steps is None else "step"
        facts = f"{word} of {duration_text(answer.span_ns)}" if answer.is_length_known else ""
        if answer.gpu:
            facts += f" on {answer.gpu}"
        first = f"{visible(self.source)}  {visible(facts.strip())}"
        yield from prose(console, first.rstrip(), DIM, edge=edge)
        yield from prose(console, visible(answer.sentence), HEADING, edge=edge)
        if answer.host:
            when = "meanwhile" if answer.idle_ns > 0 else "outside of recorded work"
            lines = f"main thread {when}: {', '.join(each.text for each in answer.host)}"
            yield from prose(console, visible(lines, _MAX_TEXT), None, edge=edge)
        for number, each in enumerate(answer.memory):
            line = f"  {each.text}" if number else f"GPU memory: {each.text}"
            yield from prose(console, visible(line, _MAX_TEXT), None, edge=edge)
        yield from _losses(console, self.losses, edge)
        if answer.findings:
            whole = f"of {word}" if answer.is_length_known else "of work"
            shared = " (several may save the same time)" if len(answer.findings) > 1 else ""
            yield Segment(f"\nsaves at most{whole:>9}  finding{shared}\n", HEADING)
            yield from self._findings(edge)
        if answer.rows:
            yield from self._rows(edge)
        yield Segment("\n")
        if answer.missing:
            missing = f"not recorded: {', '.join(answer.missing)}"
            yield from prose(console, visible(missing), DIM, edge=edge)
        more = f"more: proton why {shlex.quote(self.source)} NAME, of a finding or in a row's path"
        yield from prose(console, visible(more), DIM, edge=edge)

    def _findings(self, edge: int | None) -> Iterator[Segment]:
        shown = self.answer.findings if edge is None else self.answer.findings[:_MOST_FINDINGS]
        for finding in shown:
            gain = duration_text(finding.gain_ns).rjust(13)
            share = share_text(finding.gain_ns, self.answer.span_ns).rjust(8)
            yield Segment(f"{gain} {share}  ", DIM)
            yield Segment(f"{_cut(finding.text, edge, _FINDING_AT)}\n")
            helps = f"-> {finding.helps}"
            id_ = finding.id.rjust(_FINDING_AT - 2)
            yield Segment(f"{id_}  {_cut(helps, edge, _FINDING_AT)}\n", DIM)
        yield from _left_out(len(self.answer.findings) - len(shown), "finding", _FINDING_AT)

    def _rows(self, edge: int | None) -> Iterator[Segment]:
        shown = self.answer.rows[:_MOST_ROWS]
        wide = max(len(row.verdict.kind) for row in shown)
        is_host = self.answer.device == "CPU"
        heading = f"{'' if is_host else self.answer.device:>3} time  {'verdict'.ljust(wide)}  row"
        evidence = (each for finding in self.answer.findings for each in finding.evidence)
        trials = next((each.text for each in evidence if each.id == "kernels.trials"), "")
        yield Segment(f"\n{heading}{f', without {trials}' if trials else ''}\n", HEADING)
        for row in shown:
            share = share_text(row.time_ns, self.answer.work_ns)
            yield Segment(f"{duration_text(row.time_ns) if is_host else share:>8}  ", DIM)
            yield Segment(f"{row.verdict.kind.ljust(wide)}  ", HEADING)
            names = [visible(name) for name in row.place]
            room = None if edge is None else max(edge - _ROW_AT - wide - 2, _LEAST_NAME)
            yield Segment(f"{_ARROW.join(names) if room is None else fitting_path(names, room)}\n")
            if row.verdict.evidence:
                text = _cut(_short_evidence(row.verdict), edge, _ROW_AT)
                yield Segment(f"{' ' * _ROW_AT}{text}\n", DIM)
        yield from _left_out(
            self.answer.smaller + len(self.answer.rows) - len(shown), "row", _ROW_AT
        )


@dataclass(frozen=True, slots=True, eq=False)
class WhyFindingReport:
    """A rich renderable of everything about one finding.

    Attributes:
        answer: An answer about a finding.
        losses: What is missing from the profile, a sentence each.
    """

    answer: Answer
    losses: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the finding, its evidence, what helps, and the verdicts of its rows."""
        edge = edge_of(console, options)
        (finding,) = self.answer.findings
        yield from prose(console, visible(finding.text, _MAX_TEXT), HEADING, edge=edge)
        evidence = [f"evidence: {each.text} ({each.id})" for each in finding.evidence]
        for line in (*evidence, *_advice(finding, self.answer)):
            yield from prose(console, visible(line, _MAX_TEXT), None, edge=edge)
        for row in self.answer.rows:
            path = _ARROW.join(visible(name) for name in row.path)
            share = share_text(row.time_ns, self.answer.work_ns)
            line = f"row: {share}, {row.verdict.kind}: {path}"
            yield from prose(console, line, None, edge=edge)
        yield from _left_out(self.answer.smaller, "row", 0)
        yield from _losses(console, self.losses, edge)


@dataclass(frozen=True, slots=True, eq=False)
class WhyRowReport:
    """A rich renderable of everything about one row.

    Attributes:
        answer: An answer about a row.
        losses: What is missing from the profile, a sentence each.
    """

    answer: Answer
    losses: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the path, the time, the verdict, its evidence and what helps."""
        edge = edge_of(console, options)
        for row in self.answer.rows:
            path = _ARROW.join(visible(name) for name in row.path)
            yield from prose(console, path, HEADING, edge=edge)
            for line in _row_lines(row, self.answer):
                yield from prose(console, visible(line, _MAX_TEXT), None, edge=edge)
        word = "run" if self.answer.steps is None else "step"
        for finding in _about(self.answer):
            text = (
                f"finding of the whole {word}: {finding.text}; saves at most "
                f"{duration_text(finding.gain_ns)}: {finding.helps}"
            )
            yield from prose(console, visible(text, _MAX_TEXT), None, edge=edge)
        yield from _losses(console, self.losses, edge)
        if self.answer.missing:
            missing = f"not recorded: {', '.join(self.answer.missing)}"
            yield from prose(console, visible(missing), DIM, edge=edge)
        others = self.answer.others
        if others:
            yield Segment("\nother rows with that name:\n", DIM)
            for other in others[:_MOST_ROWS]:
                names = [visible(name) for name in other]
                room = None if edge is None else edge - 2
                shown = _ARROW.join(names) if room is None else fitting_path(names, room)
                yield Segment(f"  {shown}\n", DIM)
            yield from _left_out(len(others) - _MOST_ROWS, "row", 2)


def _row_lines(row: WhyRow, answer: Answer) -> Iterator[str]:
    text = f"time: {duration_text(row.time_ns)}"
    if answer.device != "CPU":  # several threads may work at the same time
        share = share_text(row.time_ns, answer.work_ns)
        text += f", {share} of {f'{answer.device} time'.strip()}"
    if row.launches > 0:
        mean = duration_text(row.time_ns / row.launches)
        words = ("call", "calls") if answer.device == "CPU" else ("launch", "launches")
        text += f", {count_text(row.launches, *words)} of {mean}"
    yield text
    verdict = row.verdict
    yield f"verdict: {verdict.kind}"
    if verdict.reason:
        yield f"reason: {verdict.reason}"
    for evidence in verdict.evidence:
        yield f"evidence: {evidence.text} ({evidence.id})"
    if verdict.measure:
        yield f"what would tell: {verdict.measure}"
    yield from _advice(verdict, answer)


def _advice(about: Finding | Verdict, answer: Answer) -> Iterator[str]:
    if about.helps:
        yield f"usually helps: {about.helps}"
    if about.gain_ns is not None:
        gain, part = duration_text(about.gain_ns), share_text(about.gain_ns, answer.span_ns)
        length = "the run" if answer.steps is None else "the step"
        whole = length if answer.is_length_known else "all work"
        yield f"saves at most: {gain}, {part} of {whole}, at the same work"
    if about.source:
        yield f"rule: {about.source}"


def _about(answer: Answer) -> Iterable[Finding]:
    """Yield the findings that are about the chosen row or rows below it."""
    return (each for each in answer.findings if not answer.below.isdisjoint(each.rows))


def _evidence_text(verdict: Verdict) -> str:
    return visible("; ".join(evidence.text for evidence in verdict.evidence), _MAX_TEXT)


def _short_evidence(verdict: Verdict) -> str:
    """Return the evidence; of units that decide nothing, which `WhyRowReport` lists, the reason."""
    is_listed = any(evidence.id.startswith("counter.") for evidence in verdict.evidence)
    return verdict.reason if is_listed and not verdict.is_known else _evidence_text(verdict)


def _losses(console: Console, losses: Sequence[str], edge: int | None) -> Iterator[Segment]:
    for loss in losses:
        yield from prose(console, loss, WARNING, edge=edge)


def _cut(text: str, edge: int | None, used: int) -> str:
    shown = visible(text, _MAX_TEXT)
    return shown if edge is None else fitting(shown, max(edge - used, _LEAST_NAME))


def _left_out(count: int, what: str, indent: int) -> Sequence[Segment]:
    text = f"{' ' * indent}{count_text(count, f'more {what}')}\n"
    return [Segment(text, DIM)] if count > 0 else []


def within_tokens(text: str, tokens: int) -> str:
    """Return the first lines of a text that a language model reads as so many tokens at most.

    A token is taken as three bytes: fewer than the four of English prose, as numbers and paths have
    shorter ones.

    Args:
        text: Lines.
        tokens: The most tokens, with the line that says how many lines are left out.
    """
    room = tokens * _BYTES_OF_TOKEN
    if len(text.encode()) <= room:
        return text
    lines = text.splitlines(keepends=True)
    room -= len(f"{count_text(len(lines), 'more line')}\n")
    ends = accumulate(len(line.encode()) for line in lines)
    kept = sum(1 for _ in takewhile(lambda end: end <= room, ends))
    return "".join(lines[:kept]) + f"{count_text(len(lines) - kept, 'more line')}\n"


# -- other forms -----------------------------------------------------------------------------------
_VERSION = (1, 0)


def why_document(answer: Answer, *, source: str, losses: Sequence[str] = ()) -> dict[str, Any]:
    """Return what ``proton why --json`` prints.

    Times are in ns. ``gain_ns`` is an upper bound, ``own_ns`` the part of it that can be added up.
    Each evidence has an ``id`` that is the same in every file.

    Args:
        answer: About the whole run, or one finding or row.
        source: Name of the file.
        losses: What is missing from the profile, a sentence each.
    """
    return {
        "schema": "proton_bench.why",
        "version": _VERSION,
        "source": source,
        "summary": answer.sentence,
        "steps": None if answer.steps is None else asdict(answer.steps),
        "gpu": answer.gpu or None,
        "span_ns": answer.span_ns if answer.is_length_known else None,
        "work_ns": answer.work_ns,
        "idle_ns": answer.idle_ns,
        "findings": [
            {name: value for name, value in asdict(finding).items() if name != "rows"}
            for finding in answer.findings
        ],
        "together_ns": answer.together_ns,
        "rows": [_row(row) for row in answer.rows],
        "smaller_rows": answer.smaller,
        "others": answer.others,
        "ceilings": None
        if answer.ceilings is None
        else {
            "fractions": dict(answer.ceilings.fractions),
            "measured": sorted(answer.ceilings.measured),
        },
        "missing": answer.missing,
        "losses": losses,
        "host": [asdict(each) for each in answer.host],
        "memory": [asdict(each) for each in answer.memory],
    }


def _row(row: WhyRow) -> dict[str, Any]:
    return {
        "path": row.path,
        "kind": KIND_NAMES[row.kind],
        "time_ns": row.time_ns,
        "launches": row.launches,
        "verdict": asdict(row.verdict),
    }

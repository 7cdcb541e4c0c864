"""The source with its hot lines: share of the samples, stall reasons, and their meanings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.kernels.source_lines import SampleCounts, SampledFile, SampledSource
from proton_bench.analysis.kernels.stall_reasons import NOT_ISSUED, PARTS, REASON, explain_stall
from proton_bench.model.profile import Profile
from proton_bench.report.text.theme import BANDS, DIM, HEADING, WARNING, bands_of
from proton_bench.report.words.edge import edge_of, fitting, fitting_name, prose
from proton_bench.report.words.source_text import SourceText, read_source
from proton_bench.support.text import visible
from proton_bench.support.units import count_text, share_text

__all__ = ["DEFAULT_THRESHOLD", "SourceReport", "shown_lines"]

# Percent of all samples.
DEFAULT_THRESHOLD = 0.5
_CONTEXT = 2
_MAX_KERNELS = 10
_SHARE, _ISSUE, _STALL = 7, 10, 25
_LEAST_TEXT = 34  # columns of source below which the column of issues goes
_LEAST_TEXT_OF_ALL = 8  # and that of stalls
_TAB = 4


@dataclass(frozen=True, slots=True, eq=False)
class SourceReport:
    """A rich renderable of the sampled source.

    Attributes:
        source: Samples by line.
        profile: Their profile.
        root: Folder below which source files are read.
        threshold: Lines and kernels with a smaller share of all samples, in percent, are summed up.
        context: Lines to show around each.
    """

    source: SampledSource
    profile: Profile
    root: Path
    threshold: float = DEFAULT_THRESHOLD
    context: int = _CONTEXT

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the files with their hot lines, kernels without lines, and meanings of stalls."""
        edge = edge_of(console, options)
        everything = self.source.samples
        parts = ", ".join(f"{share_text(everything.share(part))} {_spoken(part)}" for part in PARTS)
        heading = f"{count_text(everything.total, 'sample')}: {parts}"
        yield from prose(console, heading, HEADING, edge=edge)
        shown: list[SampleCounts] = []
        for file in self.source.files:
            hot = shown_lines(file, everything.total, self.threshold)
            shown += [file.lines[line] for line in hot]
            yield from self._file(console, file, hot, edge=edge)
        yield from self._unplaced(console, edge)
        shown += [counts for _, counts in self._hot_kernels()]
        yield from _legend(console, shown, edge=edge)

    # -- one file --------------------------------------------------------------------------------
    def _file(
        self, console: Console, file: SampledFile, hot: Sequence[int], *, edge: int | None
    ) -> Iterator[Segment]:
        total = self.source.samples.total
        share = share_text(file.samples.total / total)
        heading = f"{visible(file.path)}  {share} of the samples"
        yield Segment("\n")
        yield from prose(console, heading, HEADING, edge=edge)
        text = read_source(file.path, self.profile, max(file.lines), root=self.root)
        if text.note:
            yield from prose(console, f"  {visible(text.note)}", WARNING, edge=edge)
        if hot:
            yield from self._table(file, hot, text=text, edge=edge)
        cold = len(file.lines) - len(hot)
        if cold:
            rest = file.samples.total - sum(file.lines[line].total for line in hot)
            line = f"  {count_text(cold, 'more line')} with {share_text(rest / total)} in all"
            yield from prose(console, f"{line}; -t 0 shows every line", DIM, edge=edge)

    def _table(
        self, file: SampledFile, hot: Sequence[int], *, text: SourceText, edge: int | None
    ) -> Iterator[Segment]:
        columns = _Columns.of(hot[-1] + self.context, edge)
        yield Segment(columns.heading(), HEADING)
        total = self.source.samples.total
        sizes = np.array([file.lines[line].total for line in hot])
        bands = dict(zip(hot, bands_of(sizes, float(sizes.max(initial=0))), strict=True))
        last = 0
        for line in _with_context(hot, text, self.context):
            if last and line > last + 1:
                yield Segment(f"{'...':>{columns.width - 2}}\n", DIM)
            last = line
            source = _source_text(file, line, text)
            if edge is not None:
                source = fitting(source, edge - columns.width)
            if line not in bands:
                yield Segment(f"{line:>{columns.width - 2}}  {source}".rstrip() + "\n", DIM)
                continue
            share = share_text(file.lines[line].total / total)
            yield Segment(f"{share:>{_SHARE}}", BANDS[bands[line]].style)
            yield Segment(columns.cells(file.lines[line]))
            yield Segment(f"  {line:>{columns.digits}}  {source}\n")

    # -- samples without a line ------------------------------------------------------------------
    def _hot_kernels(self) -> list[tuple[str, SampleCounts]]:
        least = self.threshold / 100.0 * self.source.samples.total
        return [each for each in self.source.unplaced if each[1].total >= least][:_MAX_KERNELS]

    def _unplaced(self, console: Console, edge: int | None) -> Iterator[Segment]:
        every, hot = self.source.unplaced, self._hot_kernels()
        if not every:
            return
        total = self.source.samples.total
        yield Segment("\n")
        held = sum(counts.total for _, counts in every)
        heading = f"Samples without a line  {share_text(held / total)} of the samples"
        yield from prose(console, heading, HEADING, edge=edge)
        has_stalls = edge is None or edge - _SHARE - _STALL - 4 >= _LEAST_TEXT_OF_ALL
        for name, counts in hot:
            stall = f"{_top_stall(counts):<{_STALL}}  " if has_stalls else ""
            start = f"{share_text(counts.total / total):>{_SHARE}}  {stall}"
            shown = visible(name)
            yield Segment(
                f"{start}{shown if edge is None else fitting_name(shown, edge - len(start))}\n"
            )
        rest = held - sum(counts.total for _, counts in hot)
        if len(every) > len(hot):
            more = count_text(len(every) - len(hot), "more kernel")
            yield from prose(console, f"  {more} with {share_text(rest / total)}", DIM, edge=edge)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns in front of the source.

    Attributes:
        digits: Width of line numbers.
        has_issues: Whether the share that was not issued fits.
        has_stalls: Whether the top stall fits.
    """

    digits: int
    has_issues: bool = True
    has_stalls: bool = True

    @classmethod
    def of(cls, last_line: int, edge: int | None) -> _Columns:
        digits = max(len(str(last_line)), len("line"))
        found = cls(digits)
        if edge is not None and edge - found.width < _LEAST_TEXT:
            found = replace(found, has_issues=False)
        if edge is not None and edge - found.width < _LEAST_TEXT_OF_ALL:
            found = replace(found, has_stalls=False)
        return found

    @property
    def width(self) -> int:
        parts = (_ISSUE * self.has_issues, _STALL * self.has_stalls)
        return _SHARE + 2 + sum(part + 2 for part in parts if part) + self.digits + 2

    def heading(self) -> str:
        first = f"{'samples':>{_SHARE}}"
        cells = self._joined("not issued", "top stall")
        return f"{first}{cells}  {'line':>{self.digits}}  source\n"

    def cells(self, counts: SampleCounts) -> str:
        return self._joined(share_text(counts.share(NOT_ISSUED)), _top_stall(counts))

    def _joined(self, issues: str, stall: str) -> str:
        idle = f"  {issues:>{_ISSUE}}" if self.has_issues else ""
        return idle + (f"  {stall:<{_STALL}}" if self.has_stalls else "")


def shown_lines(file: SampledFile, total: int, threshold: float) -> list[int]:
    """Return the lines of a file with at least this percentage of all samples, in order."""
    least = threshold / 100.0 * total
    return [line for line in file.lines if file.lines[line].total >= least]


def _with_context(hot: Sequence[int], text: SourceText, context: int) -> list[int]:
    found = set(hot)
    for line in hot:
        around = range(line - context, line + context + 1)
        found.update(each for each in around if text.line(each) is not None)
    return sorted(found)


def _source_text(file: SampledFile, line: int, text: SourceText) -> str:
    source = text.line(line)
    if source is not None:
        return visible(source.expandtabs(_TAB).rstrip())
    return visible(", ".join(f"({each})" for each in file.functions.get(line, ()) if each))


def _top_stall(counts: SampleCounts) -> str:
    waits = counts.waits()
    if not waits:
        return "-"
    metric, samples = waits[0]
    return fitting(
        visible(f"{metric.removeprefix(REASON)} {share_text(samples / counts.total)}"), _STALL
    )


def _spoken(part: str) -> str:
    return part.replace("_", " ")


# -- what the words mean -------------------------------------------------------------------------
def _legend(
    console: Console, shown: Iterable[SampleCounts], *, edge: int | None
) -> Iterator[Segment]:
    tops: dict[str, int] = {}
    for counts in shown:
        for metric, samples in counts.waits()[:1]:
            tops[metric] = tops.get(metric, 0) + samples
    yield Segment("\n")
    yield Segment("Legend\n", HEADING)
    for part, meaning in PARTS.items():
        yield from prose(console, f"  {_spoken(part)}: {meaning}", DIM, edge=edge)
    sources: dict[str, None] = {}
    for metric in sorted(tops, key=lambda each: (-tops[each], each)):
        reason = explain_stall(metric)
        if reason is None:
            continue
        sources[reason.source] = None
        helps = f"; what helps: {reason.remedy}" if reason.remedy else ""
        yield from prose(console, f"  {reason.name}: {reason.meaning}{helps}", DIM, edge=edge)
    for source in sources:
        yield from prose(console, f"  reasons as in {source}", DIM, edge=edge)

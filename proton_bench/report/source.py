"""The source with its hot lines: share of the samples, why warps waited, and what that means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.source_lines import SampleCounts, SampledFile, SampledSource
from proton_bench.analysis.stall_reasons import explain_stall
from proton_bench.analysis.stalls import NOT_ISSUED, PARTS, REASON
from proton_bench.profile import Profile
from proton_bench.report.edge import edge_of, fitting, prose
from proton_bench.report.names import visible
from proton_bench.report.source_text import SourceText, read_source
from proton_bench.report.theme import BANDS, DIM, HEADING, WARNING, bands_of
from proton_bench.report.units import count_text

__all__ = ["DEFAULT_THRESHOLD", "SourceReport", "shown_lines"]

# Percent of all samples.
DEFAULT_THRESHOLD = 0.5
_CONTEXT = 2
_MAX_KERNELS = 10
_SHARE, _ISSUE, _STALL = 7, 10, 25
_LEAST_TEXT = 34  # columns of source below which the column of issues goes
_TAB = 4


@dataclass(frozen=True, slots=True, eq=False)
class SourceReport:
    """A rich renderable of the sampled source.

    Attributes:
        source: Samples by line.
        profile: Where they come from.
        threshold: Lines and kernels with a smaller share of all samples, in percent, are summed up.
        context: Lines to show around each.
    """

    source: SampledSource
    profile: Profile
    threshold: float = DEFAULT_THRESHOLD
    context: int = _CONTEXT

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the files with their hot lines, kernels without lines, and what stalls mean."""
        edge = edge_of(console, options)
        everything = self.source.samples
        parts = ", ".join(f"{_percent(everything.share(part))} {_spoken(part)}" for part in PARTS)
        heading = f"{count_text(everything.total, 'sample')}: {parts}"
        yield from prose(console, heading, HEADING, edge=edge)
        shown: list[SampleCounts] = []
        for file in self.source.files:
            hot = shown_lines(file, everything.total, self.threshold)
            shown += [file.lines[line] for line in hot]
            yield from self._file(console, file, hot, edge=edge)
        yield from self._unplaced(console, edge)
        shown += [counts for _, counts in self._hot_kernels()]
        yield from _legend(console, shown, edge)

    # -- one file --------------------------------------------------------------------------------
    def _file(
        self, console: Console, file: SampledFile, hot: Sequence[int], *, edge: int | None
    ) -> Iterator[Segment]:
        total = self.source.samples.total
        share = _percent(file.samples.total / total)
        heading = f"{visible(file.path)}  {share} of the samples"
        yield Segment("\n")
        yield from prose(console, heading, HEADING, edge=edge)
        text = read_source(file.path, self.profile, max(file.lines))
        if text.note:
            yield from prose(console, f"  {visible(text.note)}", WARNING, edge=edge)
        if hot:
            yield from self._table(file, hot, text=text, edge=edge)
        cold = len(file.lines) - len(hot)
        if cold:
            rest = file.samples.total - sum(file.lines[line].total for line in hot)
            line = f"  {count_text(cold, 'more line')} with {_percent(rest / total)} in all"
            yield from prose(console, f"{line}; -t 0 shows every line", DIM, edge=edge)

    def _table(
        self, file: SampledFile, hot: Sequence[int], *, text: SourceText, edge: int | None
    ) -> Iterator[Segment]:
        digits = max(len(str(hot[-1] + self.context)), len("line"))
        width = _SHARE + 2 + _STALL + 2 + digits + 2
        has_issues = edge is None or edge - width - _ISSUE - 2 >= _LEAST_TEXT
        width += (_ISSUE + 2) * has_issues
        issues = f"{'not issued':>{_ISSUE}}  " if has_issues else ""
        yield Segment(
            f"{'samples':>{_SHARE}}  {issues}{'top stall':<{_STALL}}  {'line':>{digits}}  source\n",
            HEADING,
        )
        sizes = np.array([file.lines[line].total for line in hot])
        bands = dict(zip(hot, bands_of(sizes, float(sizes.max(initial=0))), strict=True))
        last = 0
        for line in _with_context(hot, text, self.context):
            if last and line > last + 1:
                yield Segment(f"{'...':>{width - 2}}\n", DIM)
            last = line
            source = _source_text(file, line, text)
            if edge is not None:
                source = fitting(source, edge - width)
            counts = file.lines.get(line) if line in bands else None
            if counts is None:
                yield Segment(f"{line:>{width - 2}}  {source}".rstrip() + "\n", DIM)
                continue
            share = _percent(counts.total / self.source.samples.total)
            yield Segment(f"{share:>{_SHARE}}", BANDS[bands[line]].style)
            idle = f"{_percent(counts.share(NOT_ISSUED)):>{_ISSUE}}  " if has_issues else ""
            yield Segment(f"  {idle}{_top_stall(counts):<{_STALL}}  {line:>{digits}}  {source}\n")

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
        heading = f"Samples without a line  {_percent(held / total)} of the samples"
        yield from prose(console, heading, HEADING, edge=edge)
        for name, counts in hot:
            start = f"{_percent(counts.total / total):>{_SHARE}}  {_top_stall(counts):<{_STALL}}  "
            shown = visible(name)
            yield Segment(
                f"{start}{shown if edge is None else fitting(shown, edge - len(start))}\n"
            )
        rest = held - sum(counts.total for _, counts in hot)
        if len(every) > len(hot):
            more = count_text(len(every) - len(hot), "more kernel")
            yield from prose(console, f"  {more} with {_percent(rest / total)}", DIM, edge=edge)


def shown_lines(file: SampledFile, total: int, threshold: float) -> list[int]:
    """Return the lines of a file with at least so many percent of all samples, in their order."""
    least = threshold / 100.0 * total
    return [line for line, counts in file.lines.items() if counts.total >= least]


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
        visible(f"{metric.removeprefix(REASON)} {_percent(samples / counts.total)}"), _STALL
    )


def _spoken(part: str) -> str:
    return part.replace("_", " ")


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


# -- what the words mean -------------------------------------------------------------------------
def _legend(console: Console, shown: Iterable[SampleCounts], edge: int | None) -> Iterator[Segment]:
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

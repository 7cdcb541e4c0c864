"""The source with its hot lines: on the terminal and as a JSON document."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.analysis.kernels.gpu_facts import sampling_facts
from proton_bench.analysis.kernels.source_lines import SampleCounts, SampledFile, SampledSource
from proton_bench.analysis.kernels.stall_reasons import NOT_ISSUED, PARTS, REASON, explain_stall
from proton_bench.model.profile import Profile
from proton_bench.report.words.columns import Column, Table
from proton_bench.report.words.edge import (
    BANDS,
    DIM,
    HEADING,
    WARNING,
    bands_of,
    edge_of,
    fitting,
    prose,
)
from proton_bench.support.text import visible
from proton_bench.support.units import count_text, share_text

# Percent of all samples.
DEFAULT_THRESHOLD = 0.5
_CONTEXT = 2
_MAX_KERNELS = 10
_STALL = 25
_LEAST_TEXT = 8  # columns of source below which the column of stalls goes
_WIDE = 88  # columns of a terminal below which that of issues goes
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
        total = self.source.samples.total
        lines = _with_context(hot, text, self.context)
        counts = [file.lines[line] if line in set(hot) else None for line in lines]
        samples, stalls = _columns(counts, total)
        columns = [samples, stalls, Column("line", list(map(str, lines)))]
        if edge is None or edge >= _WIDE:
            issues = [share_text(own.share(NOT_ISSUED)) if own else "" for own in counts]
            columns.insert(1, Column("not issued", issues))
        table = Table(columns, edge, _LEAST_TEXT)
        yield from table.heading("source")
        sizes = np.array([own.total if own else 0 for own in counts])
        bands = bands_of(sizes, float(sizes.max(initial=0)))
        for place, (line, own) in enumerate(zip(lines, counts, strict=True)):
            if place and line > lines[place - 1] + 1:
                yield Segment(f"{'...':>{table.width - 2}}\n", DIM)
            source = _source_text(file, line, text)
            if edge is not None:
                source = fitting(source, edge - table.width)
            style = None if own else DIM
            yield from table.values(
                place, style, {"samples": BANDS[bands[place]][1]} if own else {}
            )
            yield Segment(f"{source}\n", style)

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
        table = Table(_columns([counts for _, counts in hot], total), edge, _LEAST_TEXT)
        for place, (name, _) in enumerate(hot):
            yield from table.values(place, None)
            yield Segment(f"{table.fitting(visible(name))}\n")
        rest = held - sum(counts.total for _, counts in hot)
        if len(every) > len(hot):
            more = count_text(len(every) - len(hot), "more kernel")
            yield from prose(console, f"  {more} with {share_text(rest / total)}", DIM, edge=edge)


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


def _columns(counts: Sequence[SampleCounts | None], total: int) -> list[Column]:
    """Return the share of all samples and the most frequent stall of each line."""
    shares = [share_text(own.total / total) if own else "" for own in counts]
    stalls = [_top_stall(own) if own else "" for own in counts]
    return [Column("samples", shares), Column("top stall", stalls, 1, is_text=True)]


def _top_stall(counts: SampleCounts) -> str:
    waits = counts.waits()
    text = "-"
    if waits:
        metric, samples = waits[0]
        text = visible(f"{metric.removeprefix(REASON)} {share_text(samples / counts.total)}")
    return fitting(text, _STALL).ljust(_STALL)


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


# -- other forms -----------------------------------------------------------------------------------
_VERSION = (2, 0)


def source_document(
    source: SampledSource, profile: Profile, *, name: str, threshold: float, root: Path
) -> dict[str, Any]:
    """Return what ``proton view --source --json`` prints.

    Args:
        source: Samples by line.
        profile: Their profile.
        name: Name of the profile's file.
        threshold: Lines with a smaller share of all samples, in percent, are left out.
        root: Folder below which source files are read.
    """
    facts = sampling_facts(profile)
    reasons = sorted(metric for metric, count in source.samples.reasons.items() if count)
    return {
        "schema": "proton_bench.source",
        "version": _VERSION,
        "source": name,
        "samples": source.samples.total,
        "dropped": facts.dropped if facts else None,
        "period_cycles": facts.period_cycles or None if facts else None,
        "attribution": facts.attribution or None if facts else None,
        "parts": dict(source.samples.parts),
        "files": [
            _file(each, profile, shown_lines(each, source.samples.total, threshold), root=root)
            for each in source.files
        ],
        "kernels_without_lines": [
            {"name": kernel, **_counts(counts)} for kernel, counts in source.unplaced
        ],
        "reasons": {metric.removeprefix(REASON): _meaning(metric) for metric in reasons},
    }


def _file(file: SampledFile, profile: Profile, hot: list[int], *, root: Path) -> dict[str, Any]:
    text = read_source(file.path, profile, max(file.lines), root=root)
    return {
        "path": file.path,
        "note": text.note or None,
        **_counts(file.samples),
        "lines": [
            {
                "line": line,
                "functions": file.functions[line],
                "text": text.line(line),
                **_counts(file.lines[line]),
            }
            for line in hot
        ],
    }


def _counts(counts: SampleCounts) -> dict[str, Any]:
    return {
        "samples": counts.total,
        "parts": dict(counts.parts),
        "stalls": {metric.removeprefix(REASON): count for metric, count in counts.waits()},
    }


def _meaning(metric: str) -> dict[str, str] | None:
    reason = explain_stall(metric)
    if reason is None:
        return None
    return {"meaning": reason.meaning, "remedy": reason.remedy, "source": reason.source}


_MAX_BYTES = 8 << 20  # larger files are not source
# Folders of the kernel, whose files act or reveal processes when they are read.
_NO_SOURCE = ("/proc", "/sys", "/dev", "/run")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A source file.

    Attributes:
        lines: Its lines; empty if the file is not here.
        note: A warning about the text, or "".
    """

    lines: tuple[str, ...] = ()
    note: str = ""

    def line(self, number: int) -> str | None:
        """Return a line by its number from 1, None if the file has no such line."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else None


def read_source(path: str, profile: Profile, last_line: int, *, root: Path) -> SourceText:
    """Return the text of a file that lines of a profile name.

    It is looked up at its path, then by shorter and shorter ends of its path below the root. A
    profile may be hostile and name any file, so only regular files below the root are read.

    Args:
        path: As in the compiler's output.
        profile: The profile; it knows the folder and the time of the run.
        last_line: The last line that was sampled.
        root: The folder of the source; links are followed only below it.
    """
    for place in _places(path, profile, root):
        text = _read(place, root)
        if text is not None:
            # As compilers count: no other character ends a line.
            lines = tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
            return SourceText(lines, _note(place, path, profile, is_short=last_line > len(lines)))
    return SourceText(
        note=f"the file is not below {root}: lines are shown without their text; "
        "show them from the folder of the project"
    )


def _places(path: str, profile: Profile, root: Path) -> Iterator[Path]:
    folder = profile.provenance.get("directory")
    if os.path.isabs(path):
        yield Path(path)
    elif isinstance(folder, str):
        yield Path(folder, path)
    parts = [part for part in Path(path).parts if part not in {os.sep, ".."}]
    for start in range(len(parts)):
        yield Path(root, *parts[start:])


def _read(place: Path, root: Path) -> str | None:
    try:
        whole = place.resolve(strict=True)
        if not whole.is_relative_to(root.resolve()) or any(map(whole.is_relative_to, _NO_SOURCE)):
            return None
        # A file replaced meanwhile must not be a link to elsewhere or a blocking pipe.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        with open(os.open(whole, flags), "rb") as stream:
            facts = os.fstat(stream.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MAX_BYTES:
                return None
            return stream.read(_MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, RuntimeError):  # not readable, not a path, or a loop of links
        return None


def _note(place: Path, path: str, profile: Profile, *, is_short: bool) -> str:
    if is_short:
        return f"text of {place}, which has fewer lines than in the run: it was changed"
    ended = profile.provenance.get("end_time_ns")
    try:
        is_newer = type(ended) is int and place.stat().st_mtime_ns > ended
    except OSError:
        is_newer = False
    if is_newer:
        return f"text of {place}, which was changed after the run: lines may have moved"
    return "" if os.path.abspath(place) == os.path.abspath(path) else f"text of {place}"

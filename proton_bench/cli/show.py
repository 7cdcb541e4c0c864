"""``proton view`` and ``proton-viewer``, after their options are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proton_bench.analysis.metrics.derive import available_metrics, default_metrics
from proton_bench.analysis.view.outline import outlined
from proton_bench.analysis.view.select import MetricTree, Selection, build_tree
from proton_bench.analysis.why.verdict import WHY
from proton_bench.cli.boundary import warn
from proton_bench.cli.output_file import print_bytes
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile
from proton_bench.report.tree.tree import SortedReport, TreeReport, print_report, sorted_rows
from proton_bench.report.words.header import HeaderReport, left_out_text, root_note
from proton_bench.report.words.names import FrameFormat
from proton_bench.support.console import open_console

if TYPE_CHECKING:
    from rich.console import Console

    from proton_bench.cli.work.counters import JoinedCounters

__all__ = ["ViewRequest", "list_metrics", "show"]

# Lines of a screen besides rows: the heading, the legend with an empty line, what is left out, the
# prompt of the shell.
_OTHER_LINES = 6
_LEAST_ROWS = 10
_ROWS_OF_PIPES = 50
_BEFORE_WHY = 2


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """Options for showing one file.

    Attributes:
        file: The profile.
        metrics: Names of metrics; none means the default ones.
        selection: Which rows.
        frames: Form of Python frames' names.
        is_sorted: Also list the rows by the first metric.
        as_json: Print one JSON document instead of text.
        minus: A second profile whose values are subtracted.
        counters: A file of another tool's counters to show beside the rows.
        bars: Draw the first metric.
        why: Also show what limits each row.
        fits_screen: Show no more rows than a terminal has lines, the largest ones, unless the
            selection chooses rows; a pipe or file gets at most 50.
    """

    file: Path
    metrics: tuple[str, ...] = ()
    selection: Selection = field(default_factory=Selection)
    frames: FrameFormat = FrameFormat.FULL
    is_sorted: bool = False
    as_json: bool = False
    minus: Path | None = None
    counters: Path | None = None
    bars: bool = False
    why: bool = False
    fits_screen: bool = False


def show(request: ViewRequest) -> None:
    """Print the tree of a file.

    Raises:
        UsageError: The file, a metric, a regular expression or the selection is wrong.
        ProfileFormatError: A file is corrupt.
    """
    profile = read_profile(request.file)
    _warn_about(profile, request.file)
    metrics = request.metrics or default_metrics(profile, flat=request.selection.flat)
    if request.why and WHY not in metrics:
        # After the time and its share: a narrow terminal leaves out what stands behind.
        metrics = (*metrics[:_BEFORE_WHY], WHY, *metrics[_BEFORE_WHY:])
    join = None
    if request.counters is not None:
        join = _joined(profile, request.counters)
        profile, metrics = join.extended(request.metrics, request.selection.sort)
    tree = build_tree(profile, metrics, request.selection)
    if request.minus is not None:
        from proton_bench.analysis.view.subtract import subtract

        other = read_profile(request.minus)
        tree = subtract(tree, build_tree(other, metrics, request.selection))
    _warn_about_overflow(tree)
    if request.as_json:
        _print_json(request, profile, tree, join=join)
        return
    source = str(request.file)
    if request.minus is not None:
        source += f" minus {request.minus}"
    console = open_console()
    reports: list[Any] = [HeaderReport(profile, source)]
    if join is not None:
        reports.append(join.report())
    note = root_note(profile) if request.minus is None else ""
    shown, left_out = tree, ""
    is_long = console.file.isatty() or len(tree) > _ROWS_OF_PIPES
    if is_long and request.fits_screen and not request.selection.chooses_rows:
        outline = outlined(tree, _free_lines(console, reports))
        shown, left_out = outline.tree, left_out_text(outline.hidden, outline.share)
    flat = request.selection.flat
    reports.append(
        TreeReport(
            shown,
            request.frames,
            bars=request.bars,
            flat=flat,
            root_note=note,
            left_out=left_out,
        )
    )
    if request.is_sorted:
        reports.append(SortedReport(tree, request.frames))
    print_report(console, *reports)


def _free_lines(console: Console, reports: Sequence[Any]) -> int:
    """Return how many rows fit a screen below these reports, with a heading and a legend."""
    if not console.file.isatty():
        return _ROWS_OF_PIPES
    above = sum(segment.text.count("\n") for each in reports for segment in console.render(each))
    return max(console.height - above - _OTHER_LINES, _LEAST_ROWS)


def _print_json(
    request: ViewRequest, profile: Profile, tree: MetricTree, *, join: JoinedCounters | None
) -> None:
    from proton_bench.report.json.tree import encode_document, view_document

    order = None
    if request.is_sorted:
        order = sorted_rows(tree.metrics[0]) if tree.metrics else []
    document = view_document(
        profile, tree, source=os.fspath(request.file), frames=request.frames, order=order
    )
    if join is not None:
        document["counters"] = join.document()
    print_bytes(encode_document(document))


def list_metrics(file: Path, *, as_json: bool = False, counters: Path | None = None) -> None:
    """Print the metrics of a file, and those of a file of counters.

    Raises:
        UsageError: The file cannot be read.
        ProfileFormatError: The file is corrupt.
    """
    profile = read_profile(file)
    available = available_metrics(profile)
    if counters is not None:
        sums, means = _joined(profile, counters).shown_names()
        available = replace(
            available,
            inclusive=available.inclusive + sums,
            derivable=available.derivable + means,
        )
    if as_json:
        from proton_bench.report.json.tree import encode_document, list_document

        print_bytes(encode_document(list_document(profile, available, os.fspath(file))))
    else:
        from proton_bench.report.tree.listing import ListReport

        print_report(open_console(), ListReport(available))


def _joined(profile: Profile, path: Path) -> JoinedCounters:
    from proton_bench.cli.work.counters import JoinedCounters

    return JoinedCounters(profile, path)


def _warn_about(profile: Profile, file: Path) -> None:
    if len(profile) == 1 or not available_metrics(profile).recorded:
        what, lost = "no rows" if len(profile) == 1 else "no metrics", sum(profile.dropped.values())
        if lost:
            warn(f"{str(file)!a} has {what}: all it holds was left out, {lost} records")
        else:
            warn(f"{str(file)!a} is empty: it has {what}; nothing was recorded in that run")


def _warn_about_overflow(tree: MetricTree) -> None:
    for metric in tree.metrics:
        is_bytes = metric.name.lower().startswith("bytes")
        if is_bytes and metric.is_number and bool((metric.values[metric.valid] < 0).any()):
            warn("negative byte values: the result of an integer overflow in the recorded program")

"""``proton view`` and ``proton-viewer``, after their options are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proton_bench.analysis.choices import FrameFormat
from proton_bench.analysis.metrics.derive import (
    available_metrics,
    default_metrics,
    recorded_metrics,
)
from proton_bench.analysis.view.outline import outlined
from proton_bench.analysis.view.select import MetricTree, Selection, build_tree
from proton_bench.cli.boundary import warn
from proton_bench.cli.files import print_document
from proton_bench.formats.registry import read_steps
from proton_bench.model.profile import Profile
from proton_bench.report.text.tree import SortedReport, TreeReport, print_report, sorted_rows
from proton_bench.report.words.header import HeaderReport, left_out_text, root_note
from proton_bench.support.console import open_console

if TYPE_CHECKING:
    from rich.console import Console

    from proton_bench.analysis.counters.join import CounterJoin


# Lines of a screen besides rows: the heading, the legend with an empty line, what is left out, the
# prompt of the shell.
_OTHER_LINES = 6
_LEAST_ROWS = 10
_ROWS_OF_PIPES = 50
_EVERYTHING = Selection()


def show(
    file: Path,
    *,
    metrics: Sequence[str] = (),
    selection: Selection = _EVERYTHING,
    frames: FrameFormat = FrameFormat.FULL,
    is_sorted: bool = False,
    as_json: bool = False,
    minus: Path | None = None,
    counters: Path | None = None,
    bars: bool = False,
    fits_screen: bool = False,
    whole: bool = False,
) -> None:
    """Print the tree of a file.

    Args:
        file: The profile.
        metrics: Names of metrics; none means the default ones.
        selection: Which rows.
        frames: Form of Python frames' names.
        is_sorted: Also list the rows by the first metric.
        as_json: Print one JSON document instead of text.
        minus: A second profile whose values are subtracted.
        counters: A file of another tool's counters to show beside the rows.
        bars: Draw the first metric.
        fits_screen: Show no more rows than a terminal has lines, the largest ones, unless the
            selection chooses rows; a pipe or file gets at most 50.
        whole: Show the whole run, also where its steady steps are known.

    Raises:
        UsageError: The file, a metric, a regular expression or the selection is wrong.
        ProfileFormatError: A file is corrupt.
    """
    files = [file] if minus is None else [file, minus]
    # Counters are of all launches of a run.
    profile, *others = read_steps(files, whole=whole or counters is not None)
    _warn_about(profile, file)
    join = None if counters is None else _joined(profile, counters)
    if join is not None:
        profile, metrics = _with_counters(profile, join, metrics)
    metrics = metrics or default_metrics(profile, flat=selection.flat)
    tree = build_tree(profile, metrics, selection)
    if minus is not None:
        from proton_bench.analysis.view.align import subtract

        tree = subtract(tree, build_tree(others[0], metrics, selection))
    _warn_about_overflow(tree)
    if as_json:
        from proton_bench.report.text.tree import view_document

        order = sorted_rows(tree.metrics[0]) if is_sorted and tree.metrics else []
        document = view_document(
            profile,
            tree,
            source=os.fspath(file),
            frames=frames,
            order=order if is_sorted else None,
        )
        if join is not None:
            from proton_bench.report.text.counters import counter_document

            document["counters"] = counter_document(join, str(counters))
        print_document(document)
        return
    console = open_console()
    source = str(file) if minus is None else f"{file} minus {minus}"
    reports: list[Any] = [HeaderReport(profile, source)]
    if join is not None:
        from proton_bench.report.text.counters import CounterReport

        reports.append(CounterReport(join, str(counters)))
    shown, left_out = tree, ""
    is_long = console.file.isatty() or len(tree) > _ROWS_OF_PIPES
    if is_long and fits_screen and not selection.chooses_rows:
        outline = outlined(tree, _free_lines(console, reports))
        shown, left_out = outline.tree, left_out_text(outline.hidden, outline.share)
    note = root_note(profile) if minus is None else ""
    reports.append(
        TreeReport(shown, frames, bars=bars, flat=selection.flat, root_note=note, left_out=left_out)
    )
    if is_sorted:
        reports.append(SortedReport(tree, frames))
    print_report(console, *reports)


def _free_lines(console: Console, reports: Sequence[Any]) -> int:
    """Return how many rows fit a screen below these reports, with a heading and a legend."""
    if not console.file.isatty():
        return _ROWS_OF_PIPES
    above = sum(segment.text.count("\n") for each in reports for segment in console.render(each))
    return max(console.height - above - _OTHER_LINES, _LEAST_ROWS)


def list_metrics(
    file: Path, *, as_json: bool = False, counters: Path | None = None, whole: bool = False
) -> None:
    """Print the metrics of a file, and those of a file of counters.

    Raises:
        UsageError: The file cannot be read.
        ProfileFormatError: The file is corrupt.
    """
    profile = read_steps([file], whole=whole or counters is not None)[0]
    available = available_metrics(profile)
    if counters is not None:
        sums, means = _joined(profile, counters).shown_names()
        available = replace(
            available,
            inclusive=available.inclusive + sums,
            derivable=available.derivable + means,
        )
    if as_json:
        from proton_bench.report.text.tree import list_document

        print_document(list_document(profile, available, os.fspath(file)))
    else:
        from proton_bench.report.text.tree import ListReport

        print_report(open_console(), ListReport(available))


def _joined(profile: Profile, path: Path) -> CounterJoin:
    """Return the counters of another tool's file, joined with the rows of a profile."""
    from proton_bench.analysis.counters.file import read_counters
    from proton_bench.analysis.counters.join import add_hbm_traffic, join_counters

    file = read_counters(path)
    add_hbm_traffic(file)
    return join_counters(profile, file)


def _with_counters(
    profile: Profile, join: CounterJoin, metrics: Sequence[str]
) -> tuple[Profile, Sequence[str]]:
    """Return the profile with the shown counters, and the names of all shown metrics.

    Where none are requested these are the default ones and the most important counters.
    """
    from proton_bench.analysis.counters.join import headlines

    shown = metrics or (*default_metrics(profile), *headlines(join.file))
    names = (join.find(name) for name in shown)
    new = [name for name in names if name is not None and name not in profile.columns]
    return join.extend(profile, dict.fromkeys(new)), shown


def _warn_about(profile: Profile, file: Path) -> None:
    if len(profile) == 1 or not recorded_metrics(profile).recorded:
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

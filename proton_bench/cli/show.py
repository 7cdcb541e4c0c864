"""What ``proton view`` and ``proton-viewer`` do once their options are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proton_bench.analysis.counters.file import read_counters
from proton_bench.analysis.counters.headlines import add_hbm_traffic, headlines
from proton_bench.analysis.counters.join import join_counters
from proton_bench.analysis.counters.other_tools import CounterJoin
from proton_bench.analysis.kernels.source_lines import sampled_source
from proton_bench.analysis.metrics.derive import available_metrics, default_metrics
from proton_bench.analysis.view.name_filter import NameFilter
from proton_bench.analysis.view.select import MetricTree, Selection, build_tree
from proton_bench.analysis.view.subtract import subtract
from proton_bench.cli.output_file import print_bytes
from proton_bench.cli.project import project_folder
from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile
from proton_bench.report.json.source import source_document
from proton_bench.report.json.tree import encode_document, list_document, view_document
from proton_bench.report.text.counters import CounterReport, counter_document
from proton_bench.report.text.source import DEFAULT_THRESHOLD, SourceReport
from proton_bench.report.tree.listing import ListReport
from proton_bench.report.tree.tree import SortedReport, TreeReport, print_report, sorted_rows
from proton_bench.report.words.header import HeaderReport, root_note
from proton_bench.report.words.names import FrameFormat
from proton_bench.support.console import open_console
from proton_bench.support.text import visible

__all__ = [
    "SourceRequest",
    "ViewRequest",
    "first_file",
    "list_metrics",
    "read_metric_names",
    "show",
    "show_source",
    "warn",
]


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What to show of one file.

    Attributes:
        file: The profile.
        metrics: Names of metrics; none means the default ones.
        selection: Which rows.
        frames: Form of Python frames' names.
        is_sorted: Also list the rows by the first metric.
        as_json: Print one JSON document instead of text.
        minus: A second profile whose values are subtracted.
        counters: A file of counters of another tool to lay over the rows.
        bars: Draw the first metric.
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


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """Which lines of the source to show of one file.

    Attributes:
        file: The profile.
        wanted: End of the path of the one file of the source to show; "" shows all.
        names: Rows whose samples count, with those below them.
        threshold: Lines with a smaller share of all samples, in percent, are left out.
        as_json: Print one JSON document instead of text.
        root: Folder below which files of the source are read; None for that of the project.
    """

    file: Path
    wanted: str = ""
    names: NameFilter = field(default_factory=NameFilter)
    threshold: float = DEFAULT_THRESHOLD
    as_json: bool = False
    root: Path | None = None


def show_source(request: SourceRequest) -> None:
    """Print the source with its hot lines.

    Raises:
        UsageError: The file, a regular expression or the name of the source is wrong.
        MetricError: The profile has no PC samples.
        ProfileFormatError: The file is corrupt.
    """
    profile = read_profile(request.file)
    source = sampled_source(profile, request.names)
    if request.wanted:
        source = source.named(request.wanted)
    name = str(request.file)
    root = project_folder() if request.root is None else request.root
    if request.as_json:
        document = source_document(
            source, profile, name=name, threshold=request.threshold, root=root
        )
        print_bytes(encode_document(document))
        return
    report = SourceReport(source, profile, root, request.threshold)
    print_report(open_console(), HeaderReport(profile, name), report)


def read_metric_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list; None gives none.

    Raises:
        UsageError: A name is empty.
    """
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"-m {text!r} has an empty name: write names with a comma between them")
    return names


def warn(message: str) -> None:
    """Print one line of warning on stderr."""
    sys.stderr.write(f"proton: warning: {visible(message)}\n")


def show(request: ViewRequest) -> None:
    """Print the tree of a file.

    Raises:
        UsageError: The file, a metric, a regular expression or the selection is wrong.
        ProfileFormatError: A file is corrupt.
    """
    profile = read_profile(request.file)
    _warn_about(profile, request.file)
    metrics = request.metrics or default_metrics(profile)
    join = None
    if request.counters is not None:
        join = _join(profile, request.counters)
        profile, metrics = _with_counters(profile, join, request)
    tree = build_tree(profile, metrics, request.selection)
    if request.minus is not None:
        other = read_profile(request.minus)
        tree = subtract(tree, build_tree(other, metrics, request.selection))
    _warn_about_overflow(tree)
    if request.as_json:
        _print_json(request, profile, tree, join=join)
        return
    source = str(request.file)
    if request.minus is not None:
        source += f" minus {request.minus}"
    reports: list[Any] = [HeaderReport(profile, source)]
    if join is not None:
        reports.append(CounterReport(join, str(request.counters)))
    flat = request.selection.flat
    note = root_note(profile) if request.minus is None else ""
    reports.append(TreeReport(tree, request.frames, bars=request.bars, flat=flat, root_note=note))
    if request.is_sorted:
        reports.append(SortedReport(tree, request.frames))
    print_report(open_console(), *reports)


def _join(profile: Profile, path: Path) -> CounterJoin:
    file = read_counters(path)
    add_hbm_traffic(file)
    return join_counters(profile, file)


def _with_counters(
    profile: Profile, join: CounterJoin, request: ViewRequest
) -> tuple[Profile, tuple[str, ...]]:
    """Return the profile with the counters that are shown, and the names of what is shown."""
    metrics = request.metrics or (*default_metrics(profile), *headlines(join.file))
    asked = metrics + ((request.selection.sort,) if request.selection.sort else ())
    recorded = set(profile.columns)
    names = [name for name in map(join.find, asked) if name is not None and name not in recorded]
    return join.extend(profile, dict.fromkeys(names)), metrics


def _print_json(
    request: ViewRequest, profile: Profile, tree: MetricTree, *, join: CounterJoin | None
) -> None:
    order = None
    if request.is_sorted:
        order = sorted_rows(tree.metrics[0]) if tree.metrics else []
    document = view_document(
        profile, tree, source=os.fspath(request.file), frames=request.frames, order=order
    )
    if join is not None:
        document["counters"] = counter_document(join, os.fspath(request.counters or ""))
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
        sums, means = _join(profile, counters).shown_names()
        available = replace(
            available,
            inclusive=available.inclusive + sums,
            derivable=available.derivable + means,
        )
    if as_json:
        print_bytes(encode_document(list_document(profile, available, os.fspath(file))))
    else:
        print_report(open_console(), ListReport(available))


def _warn_about(profile: Profile, file: Path) -> None:
    if len(profile) == 1 or not available_metrics(profile).recorded:
        what = "no rows" if len(profile) == 1 else "no metrics"
        warn(f"{str(file)!a} is empty: it holds {what}; nothing was recorded in that run")


def _warn_about_overflow(tree: MetricTree) -> None:
    for metric in tree.metrics:
        is_bytes = metric.name.lower().startswith("bytes")
        if is_bytes and metric.is_number and bool((metric.values[metric.valid] < 0).any()):
            warn("negative byte values: the result of an integer overflow in the recorded program")


def first_file(files: Sequence[str]) -> Path:
    """Return the one file that was named.

    Raises:
        UsageError: None or several were named.
    """
    if len(files) != 1:
        named = ", ".join(map(repr, files)) or "none"
        raise UsageError(f"Must specify a file to read, one and only one: got {named}")
    return Path(files[0])

"""Upstream's viewer functions, on pandas data frames and hatchet graph frames.

The commands ``proton view`` and ``proton-viewer`` do not use this: they work on flat arrays.
Functions that make a graph frame need the extra ``hatchet`` and say so when it is missing.
"""

# The parameters of these functions are upstream's.
# ruff: noqa: FBT001, FBT002, PLR0913, PLR0917

from __future__ import annotations

import importlib.metadata
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from proton_bench import specs
from proton_bench.analysis.choices import UPSTREAM_FORMS, FrameFormat
from proton_bench.analysis.metrics.derive import available_metrics
from proton_bench.analysis.metrics.formula import FLOPS_WIDTHS, find_metric, unknown_metric
from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.view.dataframe import import_hatchet, remove_frames, to_literal
from proton_bench.analysis.view.frame_metrics import (
    INCLUSIVE,
    DeviceInfo,
    FactorDict,
    RecordedColumns,
    avg_cpu_time_factor_dict,
    avg_time_factor_dict,
    bytes_factor_dict,
    cpu_time_factor_dict,
    default_flop_factor_dict,
    derivable_metrics,
    get_min_time_bytes,
    get_min_time_flops,
    time_factor_dict,
)
from proton_bench.analysis.view.select import METADATA_SCOPE as COMPUTE_METADATA_SCOPE_NAME
from proton_bench.analysis.view.select import (
    MetricTree,
    Selection,
    drop_metadata,
    drop_trials,
    kept_rows,
)
from proton_bench.errors import UsageError
from proton_bench.formats.registry import find_format, read_profile
from proton_bench.model.frame import FrameKind, StringTable
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.report.text.tree import ListReport, SortedReport, TreeReport, print_report
from proton_bench.report.words.edge import format_name
from proton_bench.support.console import open_console

__all__ = [
    "COMPUTE_METADATA_SCOPE_NAME",
    "FLOPS_WIDTHS",
    "FactorDict",
    "apply_diff_profile",
    "avg_cpu_time_factor_dict",
    "avg_time_factor_dict",
    "bytes_factor_dict",
    "cpu_time_factor_dict",
    "default_flop_factor_dict",
    "derivable_metrics",
    "derive_metrics",
    "emit_warnings",
    "filter_frames",
    "format_frames",
    "get_min_time_bytes",
    "get_min_time_flops",
    "get_raw_metrics",
    "main",
    "match_available_metrics",
    "parse",
    "print_tree",
    "read",
    "remove_frames",
    "show_metrics",
    "specs",
    "time_factor_dict",
]


def __getattr__(name: str) -> Any:
    """Look up ``LaunchHook``, whose numbers upstream's viewer derives from, on first use."""
    if name == "LaunchHook":
        from proton_bench.recording.kernels.launch_variables import LaunchHook

        return LaunchHook
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# hatchet.GraphFrame: an optional package without type information.
GraphFrame = Any
RawMetrics = tuple[GraphFrame, list[str], list[str], dict[str, Any]]


def get_raw_metrics(database: Any) -> RawMetrics:
    """Return the graph frame of parsed ``.hatchet`` JSON, or of an open file of it.

    Returns:
        The graph frame without launch metadata and trials of autotuners, the names of inclusive
        and of other metrics, and the device table ``{kind: {index: facts}}``.

    Raises:
        ProfileFormatError: The data is not a profile.
        MissingExtraError: hatchet is not installed.
    """
    content = database.read() if hasattr(database, "read") else msgspec.json.encode(database)
    content = content.encode() if isinstance(content, str) else content
    return _graph_frame(find_format("hatchet").decode(content, "the given database"))


def _graph_frame(profile: Profile) -> RawMetrics:
    hatchet = import_hatchet()
    tree, devices = to_literal(drop_trials(drop_metadata(profile)))
    graph_frame = hatchet.GraphFrame.from_literal([tree])
    inclusive = graph_frame.show_metric_columns()
    names = [name for name in graph_frame.dataframe.columns if name not in inclusive]
    return graph_frame, inclusive, names, devices


def match_available_metrics(
    metrics: str | Sequence[str],
    inclusive_metrics: Sequence[str],
    exclusive_metrics: Sequence[str],
) -> list[str]:
    """Return the columns of recorded metrics; names without a column are left out.

    Args:
        metrics: Names, or one; case and units do not matter.
        inclusive_metrics: Full names of inclusive metrics.
        exclusive_metrics: Full names of the others.

    Raises:
        UnknownMetricError: None of them was recorded.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    recorded = [*inclusive_metrics, *exclusive_metrics]
    found = [full for name in names if (full := find_metric(name, recorded)) is not None]
    if not found:
        raise unknown_metric(names[-1] if names else "", recorded)
    return [f"{full}{INCLUSIVE}" if full in inclusive_metrics else full for full in found]


def read(filename: str | os.PathLike[str]) -> RawMetrics:
    """Return the result of `get_raw_metrics` for a profile in any format, with inclusive sums.

    Raises:
        UsageError: The file cannot be read or holds no metrics.
        ProfileFormatError: The file is corrupt.
        MissingExtraError: hatchet is not installed.
    """
    found = _graph_frame(read_profile(filename))
    # "name" is a column too.
    if not [name for name in (*found[1], *found[2]) if name != "name"]:
        raise UsageError(f"No metrics found in the input file {os.fspath(filename)!r}")
    found[0].update_inclusive_columns()
    return found


def parse(
    metrics: Sequence[str],
    filename: str | os.PathLike[str],
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
) -> tuple[GraphFrame, list[str]]:
    """Return the filtered graph frame of a file and the columns that the metrics became.

    Raises:
        MetricError: A metric is unknown.
        UsageError: The file or a filter is wrong.
    """
    graph_frame, inclusive, exclusive, devices = read(filename)
    columns = derive_metrics(graph_frame, metrics, inclusive, exclusive, devices)
    shown = filter_frames(graph_frame, include, exclude, threshold, columns[0])
    return shown, columns


def derive_metrics(
    gf: GraphFrame,
    metrics: Sequence[str],
    inclusive_metrics: Sequence[str],
    exclusive_metrics: Sequence[str],
    device_info: DeviceInfo,
) -> list[str]:
    """Add a column per metric to the data frame and return the columns' names.

    Inclusive columns end in `` (inc)``; those of ``cpu_time`` do too, as upstream names them.

    Raises:
        MetricError: A metric is unknown or its source was not recorded.
    """
    recorded = RecordedColumns(gf.dataframe, tuple(inclusive_metrics), tuple(exclusive_metrics))
    columns = [recorded.derive(metric, device_info) for metric in metrics]
    for column in columns:
        known = gf.inc_metrics if column.endswith(INCLUSIVE) else gf.exc_metrics
        known.append(column)
    return columns


def filter_frames(
    gf: GraphFrame,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
    metric: str | None = None,
) -> GraphFrame:
    """Return a graph frame with the nodes that the filters keep.

    Args:
        gf: The graph frame.
        include: Keep nodes whose name matches from its start, and all above and below them.
        exclude: Drop nodes whose name matches from its start, and all below them.
        threshold: Keep nodes whose ``metric`` is at least this, and all above them.
        metric: Column for the threshold.

    Raises:
        UsageError: A regular expression is malformed, or no node is left.
    """
    selection = Selection(include or None, exclude or None, threshold or None)
    if selection == Selection():
        return gf
    nodes, tree = _flattened(gf, [metric] if metric is not None else [])
    flags = kept_rows(tree, selection)
    kept = {node for node, flag in zip(nodes, flags.tolist(), strict=True) if flag}
    with _quiet_hatchet():
        return gf.filter(
            lambda line: line["node"] in kept,
            squash=True,
            num_procs=1,
            rec_limit=sys.getrecursionlimit(),
        )


def format_frames(gf: GraphFrame, format: str | None = None) -> GraphFrame:
    """Shorten the names of Python frames in place and return the graph frame.

    Args:
        gf: The graph frame.
        format: ``full``, ``file_function_line``, ``function_line``, ``file_function`` or None.

    Raises:
        UsageError: The format does not exist.
    """
    if format is not None and format not in UPSTREAM_FORMS:
        known = ", ".join(UPSTREAM_FORMS)
        raise UsageError(f"unknown frame format {format!r}: choose from {known}")
    style = FrameFormat(format) if format is not None else FrameFormat.FULL
    gf.dataframe["name"] = gf.dataframe["name"].map(lambda name: format_name(name, style))
    return gf


def apply_diff_profile(
    gf: GraphFrame,
    derived_metrics: Sequence[str],
    diff_file: str | os.PathLike[str],
    metrics: Sequence[str],
    include: str | None,
    exclude: str | None,
    threshold: float | None,
) -> GraphFrame:
    """Return the graph frame minus that of a second file, as hatchet subtracts.

    Raises:
        MetricError: The second file lacks a metric.
        UsageError: The second file or a filter is wrong.
    """
    other, _ = parse(metrics, diff_file, include, exclude, threshold)
    for graph_frame in (gf, other):
        graph_frame.inc_metrics = [name for name in derived_metrics if name.endswith(INCLUSIVE)]
        graph_frame.exc_metrics = [name for name in derived_metrics if not name.endswith(INCLUSIVE)]
    with _quiet_hatchet():
        return gf.sub(other)


def print_tree(
    gf: GraphFrame,
    metrics: Sequence[str],
    depth: int = 100,
    format: str | None = None,
    print_sorted: bool = False,
) -> None:
    """Print a graph frame as a tree.

    Args:
        gf: The graph frame; its names are shortened as ``format`` says.
        metrics: Columns to show.
        depth: Levels to show.
        format: Form of Python frames' names, see `format_frames`.
        print_sorted: Also list the nodes by the first column.
    """
    format_frames(gf, format)
    _, tree = _flattened(gf, metrics)
    deep = tree.depths() >= depth
    shown = tree.take(~deep, cut=int(deep.sum()))
    reports: list[Any] = [TreeReport(shown)]
    if print_sorted:
        reports.append(SortedReport(shown))
    print_report(open_console(), *reports)


def emit_warnings(gf: GraphFrame, metrics: Sequence[str]) -> None:
    """Print a warning about negative bytes, which are overflowed sums."""
    column = f"bytes{INCLUSIVE}"
    if column in metrics and bool((gf.dataframe[column] < 0).any()):
        sys.stdout.write("Warning: Negative byte values detected, the sum of a column wrapped\n\n")


def main() -> int:
    """Run ``proton-viewer`` with the arguments of the process and return its exit code."""
    # The command is in a room above; the package's own entry point names it.
    (command,) = importlib.metadata.entry_points(
        group="console_scripts", name="proton-bench-viewer"
    )
    return int(command.load()())


def show_metrics(file_name: str | os.PathLike[str]) -> None:
    """Print the metrics of a profile in any format.

    Raises:
        UsageError: The file cannot be read.
        ProfileFormatError: The file is corrupt.
    """
    print_report(open_console(), ListReport(available_metrics(read_profile(file_name))))


# -- graph frames as arrays ----------------------------------------------------------------------
def _flattened(gf: GraphFrame, columns: Sequence[str]) -> tuple[list[Any], MetricTree]:
    """Return the nodes in pre-order below one root, and the tree that they make."""
    nodes, parents = _in_preorder(gf.graph.roots)
    lines = gf.dataframe.loc[nodes]
    table = StringTable()
    frames = [table.index(str(name)) for name in lines["name"].tolist()]
    tree = MetricTree(
        strings=table.texts(),
        parents=np.array(parents, dtype="<i4"),
        frames=np.array(frames, dtype="<i4"),
        kinds=np.full(len(nodes), FrameKind.UNKNOWN, dtype="u1"),
        devices=("",) * len(nodes),
        metrics=tuple(_column(name, lines[name]) for name in columns),
    )
    return nodes, tree


def _in_preorder(roots: Sequence[Any]) -> tuple[list[Any], list[int]]:
    if len(roots) != 1:
        raise UsageError(f"a graph frame of a profile has one root, this one has {len(roots)}")
    nodes: list[Any] = []
    parents: list[int] = []
    waiting = [(roots[0], -1)]
    while waiting:
        node, parent = waiting.pop()
        waiting += [(child, len(nodes)) for child in reversed(node.children)]
        nodes.append(node)
        parents.append(parent)
    return nodes, parents


def _column(name: str, cells: Any) -> MetricValues:
    inclusive = name.endswith(INCLUSIVE)
    return MetricValues(
        name.removesuffix(INCLUSIVE),
        Aggregation.INCLUSIVE if inclusive else Aggregation.EXCLUSIVE,
        cells.to_numpy(),
        cells.notna().to_numpy(),
    )


def _quiet_hatchet() -> warnings.catch_warnings[Any]:
    """Return a context without the deprecation warnings that hatchet's use of pandas causes."""
    return warnings.catch_warnings(action="ignore", category=FutureWarning)


if __name__ == "__main__":
    sys.exit(main())

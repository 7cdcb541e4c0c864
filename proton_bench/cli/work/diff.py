"""``proton diff``, after its options are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.ranking import Ranking, Threshold, rank
from proton_bench.analysis.compare.readable import with_equal_layers_folded, with_texts
from proton_bench.analysis.metrics.samples import is_sample_statistic
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.name_filter import NameFilter
from proton_bench.cli.output_file import print_bytes
from proton_bench.formats.registry import read_profile
from proton_bench.report.tree.tree import print_report
from proton_bench.report.words.names import FrameFormat
from proton_bench.store.selection import Selection
from proton_bench.support.console import open_console
from proton_bench.support.text import visible_lines

__all__ = ["DiffRequest", "Output", "diff"]

_EVERYTHING = Threshold(0.0)


@dataclass(frozen=True, slots=True)
class Output:
    """In which form a comparison is printed."""

    frames: FrameFormat
    as_json: bool
    as_markdown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """Options of a comparison.

    Attributes:
        base: Runs to compare with: files, and selections of stores.
        new: Runs to compare.
        options: How to compare.
        fold_layers: Show equal layers that changed alike as one row; not in JSON.
        names: Which rows to show, by name.
        threshold: Rows that changed by less are left out; None for the default.
        depth: Levels to show.
        output: In which form.
    """

    base: Sequence[str]
    new: Sequence[str]
    options: CompareOptions
    fold_layers: bool
    names: NameFilter
    threshold: str | None
    depth: int
    output: Output


def diff(request: DiffRequest) -> None:
    """Print what changed.

    Raises:
        UsageError: A file, an option or the threshold is wrong.
        MetricError: A profile has no such metric.
        ProfileFormatError: A file is corrupt.
    """
    least = Threshold.parse(request.threshold) if request.threshold is not None else None
    if request.output.as_json and least is None:
        least = _EVERYTHING
    metric = request.options.metric
    quantiles = metric is not None and is_sample_statistic(metric)
    first, second = (
        [run for word in side for run in _runs(word, quantiles=quantiles)]
        for side in (request.base, request.new)
    )
    comparison = compare(first, second, request.options)
    if not request.output.as_json:
        if request.fold_layers and request.options.by is By.PATH:
            folded = with_equal_layers_folded(comparison, request.options)
            before, after = (map(each.tree.name, range(len(each))) for each in (comparison, folded))
            if not request.names.is_lost(before, after):
                comparison = folded
        is_short = request.output.frames is FrameFormat.SHORT
        readable = Readable(kernels=not request.options.raw_names, frames=is_short)
        comparison = with_texts(comparison, readable)
    ranking = rank(comparison, least, request.depth, names=request.names)
    _print(comparison, ranking, request.output)


def _runs(word: str, *, quantiles: bool) -> list[Run]:
    selection = Selection.of(word)
    if selection is not None:
        return selection.runs(quantiles=quantiles)
    return [Run(read_profile(word), word)]


def _print(comparison: Comparison, ranking: Ranking, output: Output) -> None:
    if output.as_json:
        from proton_bench.report.json.diff import diff_document
        from proton_bench.report.json.tree import encode_document

        print_bytes(encode_document(diff_document(comparison, ranking)))
    elif output.as_markdown:
        from proton_bench.report.ci.diff_markdown import diff_markdown

        text = diff_markdown(comparison, ranking, output.frames)
        print_bytes(visible_lines(text).encode())
    else:
        from proton_bench.report.text.diff import DiffReport

        print_report(open_console(), DiffReport(comparison, ranking, output.frames))

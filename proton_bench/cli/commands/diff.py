"""``proton diff``: compare two profiles, or two sets of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.analysis.choices import DEFAULT_DEPTH, By
from proton_bench.cli.files import check_profiles, print_bytes, print_document, print_reports
from proton_bench.cli.options import (
    DepthOption,
    ExcludeOption,
    IncludeOption,
    WholeOption,
)
from proton_bench.errors import UsageError
from proton_bench.store.selection import Selection
from proton_bench.support.text import visible_lines

if TYPE_CHECKING:
    from proton_bench.analysis.compare.compare import CompareOptions, Comparison
    from proton_bench.analysis.run import Run
    from proton_bench.analysis.view.names import NameFilter
    from proton_bench.model.profile import Profile


def command(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="The profile to compare with, and the new profile. STORE or STORE?CONDITION is "
            "all runs of a store, or those that an SQL condition holds for.",
            metavar="BASE NEW",
        ),
    ] = None,
    base: Annotated[
        list[str] | None,
        typer.Option("--base", metavar="FILE", help="Another run of the base; may be repeated."),
    ] = None,
    new: Annotated[
        list[str] | None,
        typer.Option("--new", metavar="FILE", help="Another new run; may be repeated."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME",
            help="What to compare, such as time/ms, count, avg_time/us or tflop16/s (default: a "
            "time, or the metric closest to it).",
        ),
    ] = None,
    by: Annotated[By, typer.Option("--by", help="What makes a row.")] = By.PATH,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            "-t",
            "--threshold",
            metavar="VALUE|PERCENT%",
            help="Leave out rows that changed by less than this, in the unit of the metric, or as "
            "a share of the total: 1%. 0 shows everything.",
        ),
    ] = None,
    depth: DepthOption = DEFAULT_DEPTH,
    every_row: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Show every row, also each of equal layers that changed alike and of library "
            "frames.",
        ),
    ] = False,
    raw_names: Annotated[
        bool,
        typer.Option(
            "--raw-names",
            help="Show the names of kernels as they were recorded, and also distinguish rows by "
            "running numbers of Inductor's kernels and lines of Python frames.",
        ),
    ] = False,
    whole: WholeOption = False,
    ignore_devices: Annotated[
        bool,
        typer.Option("--ignore-devices", help="Compare runs of different kinds of devices."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document with all rows.")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a table for pull requests and job summaries.")
    ] = False,
) -> None:
    """Show what changed from one profile to another, and why."""
    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other: give one of them")
    before, after = _sides(files or [], base or [], new or [])
    check_profiles([*before, *after])
    from proton_bench.analysis.compare.compare import CompareOptions, compare, reported_metric
    from proton_bench.analysis.compare.ranking import Threshold, rank
    from proton_bench.analysis.compare.readable import with_texts
    from proton_bench.analysis.metrics.samples import is_sample_statistic
    from proton_bench.analysis.naming.readable import Readable
    from proton_bench.analysis.view.names import NameFilter
    from proton_bench.report.text.diff import DiffReport, diff_document, diff_markdown

    words = threshold or ("0" if every_row or as_json else None)
    least = Threshold.parse(words) if words is not None else None
    quantiles = metric is not None and is_sample_statistic(metric)
    steps = _steps([*before, *after], whole=whole)
    first, second = (
        [run for word in side for run in _runs(word, steps, quantiles=quantiles)]
        for side in (before, after)
    )
    folds = not every_row
    options = CompareOptions(
        reported_metric(metric, [*first, *second]),
        by,
        raw_names,
        ignore_devices,
        fold_frames=folds,
        fold_steps=folds,
    )
    comparison = compare(first, second, options)
    names = NameFilter(include, exclude)
    if as_json:
        ranking = rank(comparison, least, depth, names=names)
        print_document(diff_document(comparison, ranking))
        return
    if folds and by is By.PATH:
        comparison = _with_layers_folded(comparison, options, names)
    readable = Readable(kernels=not raw_names, frames=True)
    comparison = with_texts(comparison, readable)
    ranking = rank(comparison, least, depth, names=names)
    if as_markdown:
        text = diff_markdown(comparison, ranking)
        print_bytes(visible_lines(text).encode())
    else:
        print_reports(DiffReport(comparison, ranking))


def _sides(files: list[str], base: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """Return the files of both sides: two in order, those of --base and --new beside them."""
    if len(files) == 2:
        return [files[0], *base], [files[1], *new]
    if files:
        named = ", ".join(map(repr, files))
        raise UsageError(
            f"a comparison takes two profiles, BASE and NEW, got {named}: name further runs with "
            "--base FILE and --new FILE"
        )
    if not (base and new):
        raise UsageError("name two profiles, BASE and NEW, or at least one --base and one --new")
    return base, new


def _with_layers_folded(
    comparison: Comparison, options: CompareOptions, names: NameFilter
) -> Comparison:
    """Show equal layers that changed alike as one row, unless a filter names one of them."""
    from proton_bench.analysis.compare.readable import with_equal_layers_folded

    folded = with_equal_layers_folded(comparison, options)
    before, after = (map(side.tree.name, range(len(side))) for side in (comparison, folded))
    return comparison if names.is_lost(before, after) else folded


def _steps(words: list[str], *, whole: bool) -> dict[str, Profile]:
    """Return the profiles of the files among the words."""
    from proton_bench.formats.registry import read_steps

    files = [word for word in words if Selection.of(word) is None]
    profiles = read_steps(files, whole=whole or len(files) < len(words))
    return dict(zip(files, profiles, strict=True))


def _runs(word: str, profiles: dict[str, Profile], *, quantiles: bool) -> list[Run]:
    from proton_bench.analysis.run import Run

    selection = Selection.of(word)
    if selection is not None:
        return selection.runs(quantiles=quantiles)
    return [Run(profiles[word], word)]

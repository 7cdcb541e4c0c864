"""``proton view``: a profile as a tree on the terminal, or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.analysis.choices import DEFAULT_DEPTH, FrameFormat
from proton_bench.cli.files import check_profiles, print_document, print_reports, read_metric_names
from proton_bench.cli.options import (
    DepthOption,
    ExcludeOption,
    FramesOption,
    IncludeOption,
    RawNamesOption,
    WholeOption,
    project_folder,
)
from proton_bench.errors import UsageError

if TYPE_CHECKING:
    from proton_bench.analysis.view.names import NameFilter


def command(
    file: Annotated[Path, typer.Argument(help="Profile of any known format.", metavar="FILE")],
    metrics: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--metrics",
            metavar="NAME[,NAME]",
            help="Metrics to show, such as time/ms,count. Case and units of recorded metrics do "
            "not matter; see --list. By default a time, or the metric closest to it, and the "
            "count.",
        ),
    ] = None,
    list_names: Annotated[
        bool,
        typer.Option(
            "-l", "--list", help="List the metrics of the file and those derived from them."
        ),
    ] = False,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "-t",
            "--threshold",
            help="Leave out rows whose first metric is below this value; with --source, lines "
            "with a lower percentage of the samples (0.5).",
        ),
    ] = None,
    depth: DepthOption = DEFAULT_DEPTH,
    frames: FramesOption = FrameFormat.SHORT,
    raw_names: RawNamesOption = False,
    flat: Annotated[
        bool, typer.Option("--flat", help="Show a table of self values over all call paths.")
    ] = False,
    bars: Annotated[
        bool, typer.Option("--bars", help="Draw the first metric of each row as a bar.")
    ] = False,
    source: Annotated[
        bool,
        typer.Option(
            "--source",
            help="Show the source lines with samples of `-m pcsampling`.",
        ),
    ] = False,
    counters: Annotated[
        Path | None,
        typer.Option(
            "--counters",
            metavar="CSV",
            help="Show counters of `ncu --csv`, rocprof-compute or rocprofv3 beside the rows.",
        ),
    ] = None,
    every_row: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Show every row, also each of equal layers, numbered steps and library frames. By "
            "default these are one row, and a terminal gets what fits its height, a pipe or file "
            "50 rows, unless rows are chosen with -i, -e, -t or -d.",
        ),
    ] = False,
    whole: WholeOption = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="FILE is a recording in progress, or the number of a recorded process: show its "
            "last seconds (busy GPU, steps, layers, kernels), until it ends or Ctrl-C.",
        ),
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="With --watch: show one reading and end.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
) -> None:
    """Show where the time went, as a tree."""
    names = read_metric_names(metrics)
    if once and not watch:
        raise UsageError("--once is for --watch: give that too")
    if watch:
        if as_json and not once:
            raise UsageError("--json prints one document: give --once too")
        chosen = (metrics, list_names, include, exclude, flat, source, counters)
        shown = (bars, every_row, whole, raw_names, threshold is not None)
        if any((*chosen, *shown, depth != DEFAULT_DEPTH, frames is not FrameFormat.SHORT)):
            raise UsageError("--watch shows its own rows: leave options that choose others out")
        from proton_bench.cli.live import watch as watch_recording

        watch_recording(file, once=once, as_json=as_json)
        return
    check_profiles([file])
    from proton_bench.analysis.naming.readable import Readable
    from proton_bench.analysis.view.names import NameFilter
    from proton_bench.analysis.view.select import Selection
    from proton_bench.cli.show import list_metrics, show

    if list_names:
        list_metrics(file, as_json=as_json, counters=counters, whole=whole)
        return
    rows = NameFilter(include, exclude)
    if source:
        _show_source(file, rows, threshold, as_json=as_json, whole=whole)
        return
    folds = not every_row
    selection = Selection(
        include,
        exclude,
        threshold,
        depth,
        raw_names=raw_names,
        readable=Readable(
            kernels=not raw_names,
            frames=frames is FrameFormat.SHORT,
            fold_frames=folds,
            fold_layers=folds,
        ),
        flat=flat,
        by_size=True,
    )
    show(
        file,
        metrics=names,
        selection=selection,
        frames=frames,
        as_json=as_json,
        counters=counters,
        bars=bars,
        fits_screen=folds,
        whole=whole,
    )


def _show_source(
    file: Path, rows: NameFilter, threshold: float | None, *, as_json: bool, whole: bool
) -> None:
    """Print the source with its hot lines, those of the samples of some rows."""
    from proton_bench.analysis.kernels.source_lines import sampled_source
    from proton_bench.formats.registry import read_steps
    from proton_bench.report.text.source import DEFAULT_THRESHOLD, SourceReport, source_document
    from proton_bench.report.words.header import HeaderReport

    profile = read_steps([file], whole=whole)[0]
    source = sampled_source(profile, rows)
    least = DEFAULT_THRESHOLD if threshold is None else threshold
    folder = project_folder()
    if as_json:
        document = source_document(source, profile, name=str(file), threshold=least, root=folder)
        print_document(document)
        return
    report = SourceReport(source, profile, folder, least)
    print_reports(HeaderReport(profile, str(file)), report)

"""``proton report``: a profile, or its changes from another one, as one HTML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.analysis.choices import Rows
from proton_bench.cli.inputs import check_profiles, read_metric_names
from proton_bench.cli.output_file import (
    REPORT_SUFFIX,
    STDOUT,
    beside,
    output_option,
    refuse_input,
)
from proton_bench.cli.tree_options import (
    FramesOption,
    LayersOption,
    RawNamesOption,
    TrialsOption,
)
from proton_bench.errors import UsageError
from proton_bench.report.words.names import FrameFormat
from proton_bench.store.selection import Selection

__all__ = ["command"]

_DIFF_SUFFIX = ".diff.html"


def command(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Profile of any known format; with --base one or more runs of the new program; "
            "or STORE?CONDITION for the history of the runs of a store.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    base: Annotated[
        list[Path] | None,
        typer.Option(
            "--base",
            metavar="FILE",
            help="Show changes from this profile; may be repeated for several runs.",
        ),
    ] = None,
    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            metavar="GLOB",
            help="Of a store: only these call paths, such as 'fwd/**/softmax*'; may be repeated.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        output_option(
            "File to write, - for standard output (default: FILE with the suffix .html, or "
            ".diff.html with --base)."
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--metrics",
            metavar="NAME[,NAME]",
            help="Metrics to show, such as time/ms,count; the first one sets the widths of the "
            "flame graph. With --base only one is allowed.",
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(
            "--title", metavar="TEXT", help="Title of the page (default: the file's name)."
        ),
    ] = None,
    frames: FramesOption = FrameFormat.SHORT,
    layers: LayersOption = Rows.FOLDED,
    trials: TrialsOption = False,
    raw_names: RawNamesOption = False,
    ignore_devices: Annotated[
        bool,
        typer.Option(
            "--ignore-devices",
            help="With --base: compare runs of different kinds of devices.",
        ),
    ] = False,
    is_opened: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
) -> None:
    """Write an HTML page with flame graph, callers and callees, table and roofline.

    With --base it shows the changes, of a store the history of its runs. The name of the written
    file goes to stdout.
    """
    others = base or []
    file = _first(files, others)
    names = read_metric_names(metrics)
    stored = Selection.of(file)
    if bool(paths) > (stored is not None) or (stored is not None and (others or names or title)):
        raise UsageError("--path is for a store: it takes no --base, --metrics and --title")
    if ignore_devices and not others:
        raise UsageError("--ignore-devices is for comparisons: give --base FILE too")
    if output == STDOUT and is_opened:
        raise UsageError("--open needs a file: leave -o - out")
    check_profiles([*files, *others])
    from proton_bench.cli.work.report import PageOptions, Target, write_report

    if stored is not None:
        from proton_bench.cli.work.history_report import write_history

        page = output or Path(os.path.basename(stored.place.rstrip("/")) + REPORT_SUFFIX)
        write_history(file, paths or (), Target(page, is_opened))
        return
    profiles = [Path(each) for each in files]
    suffix = _DIFF_SUFFIX if others else REPORT_SUFFIX
    target = Target(output or beside(profiles[0], suffix), is_opened)
    refuse_input(target.file, [*profiles, *others])
    options = PageOptions(
        metrics=names,
        title=title or "",
        frames=frames,
        trials=trials,
        raw_names=raw_names,
        ignore_devices=ignore_devices,
        fold_layers=layers is Rows.FOLDED,
    )
    write_report(profiles, others, options, target)


def _first(files: list[str], others: list[Path]) -> str:
    if len(files) == 1 or others:
        return files[0]
    named = ", ".join(map(repr, files))
    raise UsageError(
        f"a report is about one profile, got {named}: to compare two, write "
        "proton report NEW --base BASE"
    )

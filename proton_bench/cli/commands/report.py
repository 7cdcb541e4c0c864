"""``proton report``: a profile, or its changes from another one, as one HTML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.inputs import check_profiles, read_metric_names
from proton_bench.cli.output_file import (
    REPORT_SUFFIX,
    beside,
    output_option,
    refuse_input,
)
from proton_bench.errors import UsageError
from proton_bench.store.selection import Selection

__all__ = ["REMOVED", "command"]

_DIFF_SUFFIX = ".diff.html"
_SHOWN_BY_VIEW = (
    "the page has short names and equal layers once: see `proton view --all --raw-names`"
)
# Options of earlier versions, and what to do instead.
REMOVED = {
    "--open": "open the file whose name is printed, as in `xdg-open $(proton report FILE)`",
    "--title": "the title is the name of the file: rename that",
    "--trials": "`proton-viewer --trials` shows the launches of autotuners",
    **dict.fromkeys(("-f", "--format", "--layers", "--raw-names"), _SHOWN_BY_VIEW),
}


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
    ignore_devices: Annotated[
        bool,
        typer.Option(
            "--ignore-devices",
            help="With --base: compare runs of different kinds of devices.",
        ),
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
    if bool(paths) > (stored is not None) or (stored is not None and (others or names)):
        raise UsageError("--path is for a store: it takes no --base and --metrics")
    if ignore_devices and not others:
        raise UsageError("--ignore-devices is for comparisons: give --base FILE too")
    check_profiles([*files, *others])
    from proton_bench.cli.work.report import PageOptions, write_report

    if stored is not None:
        from proton_bench.cli.work.history_report import write_history

        page = output or Path(os.path.basename(stored.place.rstrip("/")) + REPORT_SUFFIX)
        write_history(file, paths or (), page)
        return
    profiles = [Path(each) for each in files]
    suffix = _DIFF_SUFFIX if others else REPORT_SUFFIX
    target = output or beside(profiles[0], suffix)
    refuse_input(target, [*profiles, *others])
    write_report(profiles, others, PageOptions(names, ignore_devices), target)


def _first(files: list[str], others: list[Path]) -> str:
    if len(files) == 1 or others:
        return files[0]
    named = ", ".join(map(repr, files))
    raise UsageError(
        f"a report is about one profile, got {named}: to compare two, write "
        "proton report NEW --base BASE"
    )

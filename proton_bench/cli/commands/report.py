"""``proton report``: a profile, or its changes from another one, as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.cli.boundary import warn
from proton_bench.cli.files import (
    REPORT_SUFFIX,
    STDOUT,
    ProgressLine,
    beside,
    check_profiles,
    output_option,
    read_metric_names,
    refuse_input,
    write_output,
)
from proton_bench.cli.options import WholeOption
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.store.selection import Selection
from proton_bench.support.text import visible

if TYPE_CHECKING:
    from proton_bench.analysis.run import Run
    from proton_bench.report.html.strip import Strip


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
    whole: WholeOption = False,
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
    if stored is not None and (others or names):
        raise UsageError("the page of a store is its history: leave --base and --metrics out")
    if ignore_devices and not others:
        raise UsageError("--ignore-devices is for comparisons: give --base FILE too")
    check_profiles([*files, *others])
    if stored is not None:
        name = os.path.basename(stored.place.rstrip("/")) + REPORT_SUFFIX
        _write_history(file, output or Path(name))
        return
    profiles = [Path(each) for each in files]
    suffix = _DIFF_SUFFIX if others else REPORT_SUFFIX
    target = output or beside(profiles[0], suffix)
    refuse_input(target, [*profiles, *others])
    from proton_bench.report.html.document import comparison_page, profile_page

    with ProgressLine() as progress:
        progress.step("reading")
        read = _read([*profiles, *others], whole=whole)
        runs, base_runs = read[: len(profiles)], read[len(profiles) :]
        strip = None if others else _strip(profiles[0])
        progress.step("making the page")
        if others:
            page = comparison_page(base_runs, runs, names, ignore_devices=ignore_devices)
        else:
            page = profile_page(runs[0], names, strip=strip)
    _write_page(page, target)


def _first(files: list[str], others: list[Path]) -> str:
    if len(files) == 1 or others:
        return files[0]
    named = ", ".join(map(repr, files))
    raise UsageError(
        f"a report is about one profile, got {named}: to compare two, write "
        "proton report NEW --base BASE"
    )


def _read(files: Sequence[Path], *, whole: bool) -> list[Run]:
    from proton_bench.analysis.run import Run
    from proton_bench.formats.registry import read_steps

    profiles = read_steps(files, whole=whole)
    return [Run(*each) for each in zip(profiles, map(str, files), strict=True)]


def _strip(file: Path) -> Strip | None:
    """Return devices over time; a timeline whose tree can be read is shown without its events."""
    from proton_bench.report.html.strip import read_strip

    try:
        return read_strip(file)
    except ProfileFormatError as error:
        warn(f"the page shows no time line: {error}")
        return None


def _write_page(page: str, target: Path) -> None:
    """Write a page, and print its name."""
    write_output(target, page.encode("utf-8", "backslashreplace"))
    if target == STDOUT:
        return
    name = str(target).encode("utf-8", "backslashreplace").decode()
    typer.echo(visible(name))


def _write_history(word: str, target: Path) -> None:
    """Write a page about the runs of a store over time."""
    from proton_bench.cli.commands.history import open_history, read_followed, reports_of
    from proton_bench.gate.policy import PolicyWords
    from proton_bench.report.html.document import history_page

    history, _ = open_history((word,), read_followed(PolicyWords(None)), None)
    _write_page(history_page(history, reports_of(history)), target)

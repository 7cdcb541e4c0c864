"""``proton report``: a profile, or what changed since another one, as one HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.analysis.run import Run
from proton_bench.analysis.view.demangling import Demangling
from proton_bench.cli.output_file import beside, output_option, print_bytes, refuse_input
from proton_bench.cli.show import read_metric_names, warn
from proton_bench.cli.tree_options import (
    DemanglingOption,
    FramesOption,
    RawNamesOption,
    TrialsOption,
)
from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.report.html.document import PageOptions, comparison_page, profile_page
from proton_bench.report.words.names import FrameFormat
from proton_bench.support.files import write_file
from proton_bench.support.text import visible

__all__ = ["command"]

_SUFFIX = ".html"
_DIFF_SUFFIX = ".diff.html"


@dataclass(frozen=True, slots=True)
class _Target:
    file: Path
    is_opened: bool

    @property
    def is_stdout(self) -> bool:
        return str(self.file) == "-"


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Profile of any known format; with --base one or more runs of the new program.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    base: Annotated[
        list[Path] | None,
        typer.Option(
            "--base",
            metavar="FILE",
            help="Show what changed since this profile; may be repeated for several runs.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        output_option(
            "File to write, - for standard output. Without it FILE with the suffix .html, "
            "or .diff.html with --base."
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--metrics",
            metavar="NAME[,NAME]",
            help="Metrics to show, such as time/ms,count; the first one gives the widths of the "
            "flame graph. With --base it takes one.",
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option("--title", metavar="TEXT", help="Title of the page; else the file's name."),
    ] = None,
    frames: FramesOption = FrameFormat.FULL,
    trials: TrialsOption = False,
    raw_names: RawNamesOption = False,
    demangling: DemanglingOption = Demangling.OFF,
    ignore_devices: Annotated[
        bool,
        typer.Option(
            "--ignore-devices",
            help="With --base: compare what ran on different kinds of devices.",
        ),
    ] = False,
    is_opened: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
) -> None:
    """Write a page with flame graph, kernel table and roofline that any browser opens.

    With --base it shows what changed. The name of the file that was written goes to stdout.
    """
    others = base or []
    file = _first(files, others)
    options = PageOptions(
        metrics=read_metric_names(metrics),
        title=title or "",
        frames=frames,
        trials=trials,
        raw_names=raw_names,
        ignore_devices=ignore_devices,
        demangling=demangling,
    )
    if ignore_devices and not others:
        raise UsageError("--ignore-devices says how to compare: name what with by --base FILE")
    target = _Target(output or beside(file, _DIFF_SUFFIX if others else _SUFFIX), is_opened)
    if target.is_stdout and is_opened:
        raise UsageError("--open needs a file: leave out -o -")
    refuse_input(target.file, [*files, *others])
    runs = _read(files)
    page = (
        comparison_page(_read(others), runs, options) if others else profile_page(runs[0], options)
    )
    _write(page.encode("utf-8", "backslashreplace"), target)


def _read(files: list[Path]) -> list[Run]:
    return [Run(read_profile(file), str(file)) for file in files]


def _first(files: list[Path], others: list[Path]) -> Path:
    if len(files) == 1 or others:
        return files[0]
    named = ", ".join(repr(str(file)) for file in files)
    raise UsageError(
        f"a report is about one profile, got {named}: to compare two, write "
        "proton report NEW --base BASE"
    )


def _write(page: bytes, target: _Target) -> None:
    if target.is_stdout:
        print_bytes(page)
        return
    write_file(target.file, page)
    name = str(target.file).encode("utf-8", "backslashreplace").decode()
    typer.echo(visible(name))
    if target.is_opened:
        _open(target.file)


def _open(file: Path) -> None:
    import webbrowser

    if not webbrowser.open(file.resolve().as_uri()):
        warn("no browser was found to open the page in")

"""``proton diff``: two profiles, or two sets of them, laid over each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.analysis.compare.breakdown import By
from proton_bench.analysis.compare.compare import CompareOptions, Comparison, compare
from proton_bench.analysis.compare.ranking import Ranking, Threshold, rank
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.name_filter import NameFilter
from proton_bench.analysis.view.select import DEFAULT_DEPTH
from proton_bench.cli.output_file import print_bytes
from proton_bench.cli.tree_options import (
    DepthOption,
    ExcludeOption,
    FramesOption,
    IncludeOption,
)
from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.report.ci.diff_markdown import diff_markdown
from proton_bench.report.json.diff import diff_document
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.diff import DiffReport
from proton_bench.report.tree.tree import print_report
from proton_bench.report.words.names import FrameFormat
from proton_bench.support.console import open_console
from proton_bench.support.text import visible_lines

__all__ = ["command"]

_EVERYTHING = Threshold(0.0)


@dataclass(frozen=True, slots=True)
class _Output:
    frames: FrameFormat
    as_json: bool
    as_markdown: bool


def command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="The profile to compare with, and the one to compare.", metavar="BASE NEW"
        ),
    ] = None,
    base: Annotated[
        list[Path] | None,
        typer.Option("--base", metavar="FILE", help="Another run of the base; may be repeated."),
    ] = None,
    new: Annotated[
        list[Path] | None,
        typer.Option("--new", metavar="FILE", help="Another new run; may be repeated."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME",
            help="What to compare, such as time/ms, count, avg_time/us or tflop16/s. Without it a "
            "time, or what comes closest.",
        ),
    ] = None,
    by: Annotated[By, typer.Option("--by", help="What a row stands for.")] = By.PATH,
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
    frames: FramesOption = FrameFormat.FULL,
    trials: Annotated[
        bool, typer.Option("--trials", help="Also compare what autotuners launched as a trial.")
    ] = False,
    raw_names: Annotated[
        bool,
        typer.Option(
            "--raw-names",
            help="Tell rows apart by running numbers of Inductor's kernels and lines of Python "
            "frames too.",
        ),
    ] = False,
    ignore_devices: Annotated[
        bool,
        typer.Option("--ignore-devices", help="Compare what ran on different kinds of devices."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document, all rows in it.")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a table for pull requests and job summaries.")
    ] = False,
) -> None:
    """Show what changed from one profile to another, and what explains it."""
    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other: give one of them")
    least = Threshold.parse(threshold) if threshold is not None else None
    names = NameFilter(include, exclude)
    sides = _sides(files or [], base or [], new or [])
    first, second = ([Run(read_profile(file), str(file)) for file in side] for side in sides)
    options = CompareOptions(metric, by, trials, raw_names, ignore_devices)
    comparison = compare(first, second, options)
    if as_json and least is None:
        least = _EVERYTHING
    output = _Output(frames, as_json, as_markdown)
    _print(comparison, rank(comparison, least, depth, names=names), output)


def _sides(files: list[Path], base: list[Path], new: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the files of both sides: two in order, those of --base and --new beside them."""
    if len(files) == 2:
        return [files[0], *base], [files[1], *new]
    if files:
        named = ", ".join(repr(str(file)) for file in files)
        raise UsageError(
            f"a comparison takes two profiles, BASE and NEW, got {named}: name further runs with "
            "--base FILE and --new FILE"
        )
    if not (base and new):
        raise UsageError("name two profiles, BASE and NEW, or at least one --base and one --new")
    return base, new


def _print(comparison: Comparison, ranking: Ranking, output: _Output) -> None:
    if output.as_json:
        print_bytes(encode_document(diff_document(comparison, ranking)))
    elif output.as_markdown:
        text = diff_markdown(comparison, ranking, output.frames)
        print_bytes(visible_lines(text).encode())
    else:
        print_report(open_console(), DiffReport(comparison, ranking, output.frames))

"""``proton diff``: compare two profiles, or two sets of them."""

from __future__ import annotations

from typing import Annotated

import typer

from proton_bench.analysis.choices import DEFAULT_DEPTH, By
from proton_bench.cli.inputs import check_profiles
from proton_bench.cli.tree_options import (
    REMOVED,
    DepthOption,
    ExcludeOption,
    FramesOption,
    IncludeOption,
)
from proton_bench.errors import UsageError
from proton_bench.report.words.names import FrameFormat

__all__ = ["REMOVED", "command"]


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
    frames: FramesOption = FrameFormat.SHORT,
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
    from proton_bench.analysis.compare.compare import CompareOptions
    from proton_bench.analysis.view.name_filter import NameFilter
    from proton_bench.cli.work.diff import DiffRequest, Output, diff

    diff(
        DiffRequest(
            base=before,
            new=after,
            options=CompareOptions(
                metric,
                by,
                raw_names,
                ignore_devices,
                fold_frames=not every_row,
                fold_steps=not every_row,
            ),
            fold_layers=not every_row,
            names=NameFilter(include, exclude),
            threshold=threshold or ("0" if every_row else None),
            depth=depth,
            output=Output(frames, as_json, as_markdown),
        )
    )


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

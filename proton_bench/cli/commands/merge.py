"""``proton merge``: merge the files of several processes, ranks or phases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.inputs import check_profiles
from proton_bench.cli.output_file import output_option, refuse_input
from proton_bench.cli.timelines.suffixes import is_timeline
from proton_bench.errors import UsageError
from proton_bench.model.origin import ApartBy
from proton_bench.support.text import visible

__all__ = ["command"]


def command(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Profiles or timelines of processes, ranks or phases. "
            "STORE?CONDITION is all profiles of a store that an SQL condition holds for.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        output_option(
            "File to write; its suffix chooses the format. .pftrace merges timelines into one, "
            "all others write a profile."
        ),
    ] = None,
    by: Annotated[
        ApartBy,
        typer.Option("--by", help="Top rows of the merged tree."),
    ] = ApartBy.NOTHING,
    stragglers: Annotated[
        bool,
        typer.Option(
            "--stragglers", help="Print the time of each scope on each rank, and the slowest rank."
        ),
    ] = False,
    metric: Annotated[
        str | None,
        typer.Option(
            "-m", "--metric", metavar="NAME", help="With --stragglers: which time, such as wall."
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option("-d", "--depth", help="With --stragglers: levels of scopes.")
    ] = 2,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --stragglers: print one JSON document.")
    ] = False,
) -> None:
    """Merge the files of the processes, ranks or phases of a run."""
    _check(output, by, stragglers=stragglers, as_json=as_json)
    if output is not None and is_timeline(output):
        from proton_bench.cli.timelines.merge_timelines import merge_timelines

        paths = [Path(file) for file in files]
        refuse_input(output, paths)
        merge_timelines(paths, output)
        output = None
    if output is not None or stragglers:
        check_profiles(files)
        from proton_bench.cli.work.merge import Table, merge_profiles

        merge_profiles(files, output, by, Table(metric, depth, as_json) if stragglers else None)


def _check(output: Path | None, by: ApartBy, *, stragglers: bool, as_json: bool) -> None:
    if output is None and not stragglers:
        raise UsageError("-o is missing: name the file to write, or give --stragglers")
    if as_json and not stragglers:
        raise UsageError("--json prints the table of --stragglers: give that too")
    if output is None:
        return
    if is_timeline(output):
        if by is not ApartBy.NOTHING:
            raise UsageError("--by is for trees: in a timeline each process has its own tracks")
    else:
        from proton_bench.formats.base import TimelineFile
        from proton_bench.formats.registry import find_format_of

        if isinstance(find_format_of(output), TimelineFile):
            raise UsageError(
                f"{visible(output)}: timelines are merged in Perfetto's format alone: write a file "
                "called .pftrace, or a profile such as .proton"
            )

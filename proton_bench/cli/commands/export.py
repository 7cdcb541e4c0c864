"""``proton export``: a profile in another file format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.boundary import warn
from proton_bench.cli.inputs import check_profiles
from proton_bench.cli.output_file import beside, output_option, refuse_input
from proton_bench.cli.tree_options import ExcludeOption, IncludeOption
from proton_bench.errors import UsageError

__all__ = ["REMOVED", "command"]

_KINETO = "kineto"
# Options of earlier versions, and what to do instead.
REMOVED = {"--rank": "name the timeline of that rank alone"}


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Profile of any known format; with --to kineto timelines, of any number of ranks.",
            metavar="FILE...",
            show_default=False,
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="proton, hatchet, hatchet_msgpack, json, speedscope, folded, pprof, csv, "
            "parquet, kineto, or a format of a plugin.",
        ),
    ],
    output: Annotated[
        Path | None,
        output_option(
            "File to write, - for standard output; with --to kineto a folder (default: FILE with "
            "another suffix, or rank<N>.json.gz beside FILE)."
        ),
    ] = None,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
) -> None:
    """Write a profile in another format."""
    if to == _KINETO:
        if include or exclude:
            raise UsageError("-i and -e choose rows of a profile; --to kineto writes timelines")
        from proton_bench.cli.timelines.export_kineto import export_kineto

        export_kineto(files, output)
        return
    if len(files) > 1:
        raise UsageError(
            "only one profile can be exported at a time: name one FILE, or merge them first"
        )
    (file,) = files
    check_profiles(files)
    from proton_bench.analysis.view.name_filter import NameFilter
    from proton_bench.formats.registry import find_format, read_profile, write_profile

    names = NameFilter(include, exclude)
    suffix = find_format(to).suffixes[0]
    profile = read_profile(file)  # first: a missing file has no other suffix either
    if names:
        from proton_bench.analysis.view.select import narrowed

        profile = narrowed(profile, names)
    target = output if output is not None else beside(file, suffix)
    refuse_input(target, [file])
    for note in write_profile(profile, target, format=to):
        warn(note)

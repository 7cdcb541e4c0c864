"""``proton merge``: what several processes, ranks or phases recorded, as one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.analysis.ranks.job import Member, in_order
from proton_bench.analysis.ranks.job_merge import ApartBy, merge_members
from proton_bench.analysis.ranks.stragglers import find_stragglers
from proton_bench.cli.output_file import output_option, print_bytes, refuse_input
from proton_bench.cli.show import warn
from proton_bench.cli.timelines.merge_inputs import best_of_each, is_trace
from proton_bench.cli.timelines.merge_traces import merge_traces
from proton_bench.errors import UsageError
from proton_bench.formats.registry import find_format_of, read_profile, write_profile
from proton_bench.model.origin import Origin
from proton_bench.model.ranks import rank_gaps
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.stragglers import StragglerReport, straggler_document
from proton_bench.report.tree.tree import print_report
from proton_bench.report.words.ranks import gap_sentences
from proton_bench.support.console import open_console
from proton_bench.support.text import visible

__all__ = ["command"]


@dataclass(frozen=True, slots=True)
class _Table:
    metric: str | None
    depth: int
    as_json: bool


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Profiles, or timelines of one format, of processes, ranks or phases.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        output_option(
            "File to write; its suffix chooses the format. .pftrace and .chrome_trace make "
            "one timeline of timelines, all others a profile."
        ),
    ] = None,
    by: Annotated[
        ApartBy,
        typer.Option("--by", help="What gets a row of its own on top of the merged tree."),
    ] = ApartBy.NOTHING,
    stragglers: Annotated[
        bool,
        typer.Option(
            "--stragglers", help="Print the time of each scope on each rank, and who is slowest."
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
    """Make one file of those that the processes, ranks or phases of a run wrote."""
    _check(output, by, stragglers=stragglers, as_json=as_json)
    if output is not None and is_trace(output):
        refuse_input(output, files)
        merge_traces(files, output)
        output = None
    if output is not None or stragglers:
        _merge_profiles(files, output, by, _Table(metric, depth, as_json) if stragglers else None)


def _check(output: Path | None, by: ApartBy, *, stragglers: bool, as_json: bool) -> None:
    if output is None and not stragglers:
        raise UsageError("-o is missing: say which file to write, or ask for --stragglers")
    if as_json and not stragglers:
        raise UsageError("--json prints the table of --stragglers: ask for that too")
    if output is None:
        return
    if is_trace(output):
        if by is not ApartBy.NOTHING:
            raise UsageError("--by is for trees: in a timeline each process has its own tracks")
    else:
        find_format_of(output)


def _merge_profiles(
    files: list[Path], output: Path | None, by: ApartBy, table: _Table | None
) -> None:
    members = _members(best_of_each(files))
    if output is not None:
        refuse_input(output, files)
        for note in write_profile(merge_members(members, by), output):
            warn(note)
        for sentence in gap_sentences(rank_gaps(member.origin for member in members)):
            warn(sentence)
    if table is None:
        return
    found = find_stragglers(members, metric=table.metric, depth=table.depth)
    if table.as_json:
        print_bytes(encode_document(straggler_document(found, [each.source for each in members])))
    else:
        print_report(open_console(), StragglerReport(found))


def _members(files: list[Path]) -> list[Member]:
    members = []
    for file in files:
        profile = read_profile(file)
        origin = Origin.of(profile.provenance, file.name, is_partial=profile.partial)
        members.append(Member(visible(file), origin, profile))
    ordered, notes = in_order(members)
    for note in notes:
        warn(note)
    return ordered

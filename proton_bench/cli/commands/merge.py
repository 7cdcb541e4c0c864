"""``proton merge``: merge the files of several processes, ranks or phases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.cli.boundary import warn
from proton_bench.cli.files import (
    CHROME,
    PERFETTO,
    check_profiles,
    is_timeline,
    output_option,
    print_document,
    print_reports,
    refuse_input,
)
from proton_bench.errors import UsageError
from proton_bench.model.origin import ApartBy, Origin
from proton_bench.store.selection import Selection
from proton_bench.support.files import opened_output
from proton_bench.support.inputs import open_file, unreadable
from proton_bench.support.text import visible

if TYPE_CHECKING:
    from proton_bench.formats.perfetto.merge import TimelineInput
    from proton_bench.model.members import Member


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
    as_json: Annotated[
        bool, typer.Option("--json", help="With --stragglers: print one JSON document.")
    ] = False,
) -> None:
    """Merge the files of the processes, ranks or phases of a run."""
    _check(output, by, stragglers=stragglers, as_json=as_json)
    if output is not None and is_timeline(output):
        paths = [Path(file) for file in files]
        refuse_input(output, paths)
        _merge_timelines(paths, output)
        output = None
    if output is None and not stragglers:
        return
    check_profiles(files)
    from proton_bench.analysis.ranks import find_stragglers
    from proton_bench.report.text.stragglers import StragglerReport, straggler_document

    members = _members(files, quantiles=output is not None)
    if output is not None:
        _write(members, output, by, files)
    if not stragglers:
        return
    found = find_stragglers(members, metric=metric)
    if as_json:
        sources = [member.source for member in members]
        print_document(straggler_document(found, sources))
    else:
        print_reports(StragglerReport(found))


def _check(output: Path | None, by: ApartBy, *, stragglers: bool, as_json: bool) -> None:
    from proton_bench.formats.base import TimelineFile
    from proton_bench.formats.registry import find_format_of

    if output is None and not stragglers:
        raise UsageError("-o is missing: name the file to write, or give --stragglers")
    if as_json and not stragglers:
        raise UsageError("--json prints the table of --stragglers: give that too")
    if output is None:
        return
    if is_timeline(output):
        if by is not ApartBy.NOTHING:
            raise UsageError("--by is for trees: in a timeline each process has its own tracks")
    elif isinstance(find_format_of(output), TimelineFile):
        raise UsageError(
            f"{visible(output)}: timelines are merged in Perfetto's format alone: write a file "
            "called .pftrace, or a profile such as .proton"
        )


def _members(words: Sequence[str], *, quantiles: bool) -> Sequence[Member]:
    """Return the profiles of files, one for each process, and those of selections of stores."""
    from proton_bench.analysis.ranks import in_order
    from proton_bench.formats.registry import read_profile
    from proton_bench.model.members import Member

    stores = [store for word in words if (store := Selection.of(word)) is not None]
    files = _best_of_each([Path(word) for word in words if Selection.of(word) is None])
    named = ((visible(file), file.name, read_profile(file)) for file in files)
    stored = (
        (visible(row["source"]), "", profile)
        for store in stores
        for row, profile in store.profiles(quantiles=quantiles)
    )
    members, notes = in_order(
        [
            Member(source, Origin.of(profile.provenance, name, is_partial=profile.partial), profile)
            for source, name, profile in (*named, *stored)
        ]
    )
    for note in notes:
        warn(note)
    return members


def _write(members: Sequence[Member], output: Path, by: ApartBy, words: Sequence[str]) -> None:
    from proton_bench.analysis.compared_ranks import with_collectives
    from proton_bench.formats.registry import write_profile
    from proton_bench.model.members import merge_members, rank_gaps
    from proton_bench.report.words.header import gap_sentences

    refuse_input(output, [Path(word) for word in words if Selection.of(word) is None])
    merged = with_collectives(merge_members(members, by), members)
    for note in write_profile(merged, output):
        warn(note)
    for sentence in gap_sentences(rank_gaps(member.origin for member in members)):
        warn(sentence)


# Suffixes that a run writes, the most complete first.
_OF_PROFILES = (".proton", ".pftrace", ".chrome_trace", ".hatchet_msgpack", ".hatchet")


def _best_of_each(files: Sequence[Path], wanted: Sequence[str] = _OF_PROFILES) -> list[Path]:
    """Return one file for each recording, and report the others.

    ``run.proton`` and ``run.hatchet`` are of one run; so is ``run.partial.proton``, which is used
    if there is no complete file.

    Args:
        files: What the user named.
        wanted: Suffixes, the best first; files with other suffixes are always returned.

    Raises:
        UsageError: A file is named twice.
    """
    from proton_bench.formats.registry import PARTIAL

    seen: set[Path] = set()
    best: dict[Path, tuple[int, Path]] = {}
    for file in files:
        place = _resolved(file)
        if place in seen:
            raise UsageError(f"{visible(file)} is named twice; it would count twice")
        seen.add(place)
        suffix = next((each for each in wanted if file.name.endswith(each)), None)
        if suffix is None:
            best[place] = (0, file)
            continue
        stem = place.name.removesuffix(suffix)
        worth = wanted.index(suffix) + len(wanted) * stem.endswith(PARTIAL)
        run = place.with_name(stem.removesuffix(PARTIAL))
        before = best.get(run)
        if before is not None:
            taken, other = sorted([before, (worth, file)], key=lambda each: each[0])
            best[run] = taken
            warn(
                f"{visible(other[1])} is left out, because {visible(taken[1])} is of the same "
                "process"
            )
        else:
            best[run] = (worth, file)
    return [file for _, file in best.values()]


def _resolved(file: Path) -> Path:
    try:
        return file.resolve()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        raise UsageError(
            f"cannot read {visible(file)}: it is not the name of a file; name one that exists"
        ) from None


_SNIFFED = 1 << 16


def _merge_timelines(files: Sequence[Path], output: Path) -> None:
    """Merge timelines into one, and report missing ranks."""
    from proton_bench.analysis.ranks import in_order
    from proton_bench.formats.perfetto.merge import merge_perfetto
    from proton_bench.model.members import Member, rank_gaps
    from proton_bench.report.words.header import gap_sentences

    chosen = _best_of_each(files, PERFETTO + CHROME)
    for file in chosen:
        _check_format(file, output)
    surveyed = [_surveyed(file) for file in chosen]
    by_source = {each.source: each for each in surveyed}
    ordered, notes = in_order([Member(each.source, each.origin) for each in surveyed])
    for note in notes:
        warn(note)
    inputs = [by_source[member.source] for member in ordered]
    gaps = rank_gaps(each.origin for each in inputs)
    with opened_output(output) as stream:
        merge_perfetto(inputs, stream)
    for sentence in gap_sentences(gaps):
        warn(sentence)


def _surveyed(file: Path) -> TimelineInput:
    from proton_bench.formats.perfetto.merge import survey_perfetto

    try:
        return survey_perfetto(file)
    except OSError as error:
        raise unreadable(file, error) from None


def _check_format(file: Path, output: Path) -> None:
    """Refuse a file of another format than that of Perfetto."""
    from proton_bench.formats.perfetto.stream import looks_like_packets

    try:
        with open_file(file) as stream:
            head = stream.read(_SNIFFED)
    except (OSError, ValueError) as error:
        raise unreadable(file, error) from None
    if looks_like_packets(head):
        return
    raise UsageError(
        f"{visible(file)} is not a timeline in Perfetto's format, as {visible(output)} needs: name "
        "timelines in that format, or write a profile, which can merge all formats"
    )

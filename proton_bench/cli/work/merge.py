"""``proton merge`` of profiles, after its options are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proton_bench.analysis.ranks.job import in_order
from proton_bench.analysis.ranks.stragglers import find_stragglers
from proton_bench.cli.boundary import warn
from proton_bench.cli.output_file import print_bytes, refuse_input
from proton_bench.cli.timelines.merge_inputs import best_of_each
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.members import Member, merge_members
from proton_bench.model.origin import ApartBy, Origin
from proton_bench.model.ranks import rank_gaps
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.stragglers import StragglerReport, straggler_document
from proton_bench.report.tree.tree import print_report
from proton_bench.report.words.ranks import gap_sentences
from proton_bench.store.selection import Selection
from proton_bench.support.console import open_console
from proton_bench.support.text import visible

__all__ = ["Table", "merge_profiles"]


@dataclass(frozen=True, slots=True)
class Table:
    """Which times of scopes on ranks to print."""

    metric: str | None
    depth: int
    as_json: bool


def merge_profiles(
    words: Sequence[str], output: Path | None, by: ApartBy, table: Table | None
) -> None:
    """Merge profiles into one, and print the times of their scopes.

    Args:
        words: What the user named: files, and selections of stores.
        output: File to write, None for none.
        by: Top rows of the merged tree.
        table: What to print, None for nothing.

    Raises:
        UsageError: A file cannot be read, or does not fit the others.
        ProfileFormatError: A file is corrupt.
        OutputError: The output cannot be written.
    """
    stores = [store for word in words if (store := Selection.of(word)) is not None]
    files = [Path(word) for word in words if Selection.of(word) is None]
    stored = _stored(stores, quantiles=output is not None)
    members, notes = in_order([*_members(best_of_each(files)), *stored])
    for note in notes:
        warn(note)
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


def _members(files: Sequence[Path]) -> Iterator[Member]:
    for file in files:
        profile = read_profile(file)
        origin = Origin.of(profile.provenance, file.name, is_partial=profile.partial)
        yield Member(visible(file), origin, profile)


def _stored(stores: Sequence[Selection], *, quantiles: bool) -> Iterator[Member]:
    for store in stores:
        for row, profile in store.profiles(quantiles=quantiles):
            origin = Origin.of(profile.provenance, "", is_partial=profile.partial)
            yield Member(visible(row["source"]), origin, profile)

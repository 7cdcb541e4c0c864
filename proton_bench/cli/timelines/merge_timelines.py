"""Merges timelines of several processes, in Perfetto's format, into one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proton_bench.analysis.ranks.job import in_order
from proton_bench.cli.boundary import warn
from proton_bench.cli.timelines.merge_inputs import best_of_each
from proton_bench.cli.timelines.suffixes import CHROME, PERFETTO
from proton_bench.errors import UsageError
from proton_bench.formats.perfetto.merge import merge_perfetto, survey_perfetto
from proton_bench.formats.perfetto.stream import looks_like_packets
from proton_bench.formats.timeline.inputs import TimelineInput
from proton_bench.model.members import Member
from proton_bench.model.ranks import rank_gaps
from proton_bench.report.words.ranks import gap_sentences
from proton_bench.support.files import opened_output
from proton_bench.support.inputs import open_file, unreadable
from proton_bench.support.text import visible

__all__ = ["merge_timelines"]

_SNIFFED = 1 << 16


def merge_timelines(files: Sequence[Path], output: Path) -> None:
    """Merge timelines into one, and report missing ranks.

    Raises:
        UsageError: A file is not a timeline in Perfetto's format, or does not fit the others.
        ProfileFormatError: A file is damaged.
        OutputError: The output cannot be written.
    """
    chosen = best_of_each(files, PERFETTO + CHROME)
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
    try:
        return survey_perfetto(file)
    except OSError as error:
        raise unreadable(file, error) from None


def _check_format(file: Path, output: Path) -> None:
    """Check that a file is in Perfetto's format.

    Raises:
        UsageError: It is of another one, or cannot be read.
    """
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

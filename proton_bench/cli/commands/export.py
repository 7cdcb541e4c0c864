"""``proton export``: a profile in another file format."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer

from proton_bench.cli.boundary import warn
from proton_bench.cli.files import (
    CHROME,
    PERFETTO,
    STDOUT,
    beside,
    check_profiles,
    output_option,
    refuse_input,
)
from proton_bench.errors import OutputError, UsageError
from proton_bench.support.files import opened_output
from proton_bench.support.inputs import unreadable
from proton_bench.support.streams import unwritable
from proton_bench.support.text import visible

if TYPE_CHECKING:
    from proton_bench.formats.chrome.kineto_file import KinetoFile
    from proton_bench.formats.timeline.slices import TimelineSlice


_KINETO = "kineto"


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
) -> None:
    """Write a profile in another format."""
    if to == _KINETO:
        _export_kineto(files, output)
        return
    if len(files) > 1:
        raise UsageError(
            "only one profile can be exported at a time: name one FILE, or merge them first"
        )
    (file,) = files
    check_profiles(files)
    from proton_bench.formats.registry import find_format, read_profile, write_profile

    suffix = find_format(to).suffixes[0]
    profile = read_profile(file)  # first: a missing file has no other suffix either
    target = output if output is not None else beside(file, suffix)
    refuse_input(target, [file])
    for note in write_profile(profile, target, format=to):
        warn(note)


_SUFFIXES = (".json.gz", ".json")
_LEVEL = 6  # of gzip
_MOST_RANKS = 4096  # files that are open at once


def _export_kineto(files: Sequence[Path], output: Path | None) -> None:
    """Write timelines as torch.profiler does, ``rank<N>.json.gz`` for each rank."""
    timelines = [_timeline_of(file) for file in files]
    with ExitStack() as opened:
        export = _Export(opened, timelines, output)
        for file in timelines:
            _read(file, export)
        export.finish()


def _read(file: Path, export: _Export) -> None:
    from proton_bench.formats.timeline.file import read_slices

    try:
        reading = read_slices(file, export.take)
    except OutputError:
        raise
    except OSError as error:
        raise unreadable(file, error) from None
    for reason, count in reading.dropped.items():
        if count:
            warn(f"{visible(file)}: {count} times: {reason}")


class _Export:
    def __init__(self, opened: ExitStack, inputs: Sequence[Path], output: Path | None) -> None:
        self._opened = opened
        self._inputs = inputs
        self._is_file = output is not None and output.name.endswith(_SUFFIXES)
        self._output = output if output is not None else inputs[0].parent
        self._base_ns: int | None = None
        self._files: dict[int, KinetoFile] = {}
        if output == STDOUT:
            raise UsageError("--to kineto writes a file for each rank: name a folder with -o")

    def take(self, found: TimelineSlice) -> None:
        """Write a slice into the file of its rank."""
        rank = found.origin.rank or 0
        file = self._files.get(rank)
        if file is None:
            file = self._begin(rank, found)
        file.add(found)

    def finish(self) -> None:
        """Finish the files; they get their names when their exit stack closes."""
        if not self._files:
            raise UsageError(f"{visible(self._inputs[0])} holds no slice")
        for file in self._files.values():
            file.close()

    def _begin(self, rank: int, found: TimelineSlice) -> KinetoFile:
        from proton_bench.formats.chrome.kineto_file import KinetoFile, base_of

        if len(self._files) >= _MOST_RANKS:
            raise UsageError(f"there are more than {_MOST_RANKS} ranks: name the files of fewer")
        if self._is_file and self._files:
            raise UsageError(
                f"there are several ranks, but {self._output} is one file: name a folder with -o"
            )
        path = self._output if self._is_file else self._folder() / f"rank{rank}.json.gz"
        refuse_input(path, self._inputs)
        stream: IO[bytes] = self._opened.enter_context(opened_output(path))
        if path.name.endswith(".gz"):  # no name and no time: equal timelines make equal files
            packer = gzip.GzipFile("", "wb", _LEVEL, stream, 0)
            stream = cast("IO[bytes]", self._opened.enter_context(packer))
        if self._base_ns is None:
            self._base_ns = base_of(found.start_ns)
        self._files[rank] = KinetoFile(stream, found.origin, self._base_ns)
        return self._files[rank]

    def _folder(self) -> Path:
        try:
            self._output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self._output, error) from None
        return self._output


def _timeline_of(file: Path) -> Path:
    """Return the file if it is a timeline, else the timeline beside the profile."""
    if not file.name.endswith(".proton"):
        return file
    stem = file.name.removesuffix(".proton")
    for suffix in (PERFETTO[0], CHROME[0]):
        beside = file.with_name(stem + suffix)
        if beside.is_file():
            return beside
    raise UsageError(
        f"{visible(file)} is a tree, and there is no timeline beside it: record one with `proton "
        "run -d trace`"
    )

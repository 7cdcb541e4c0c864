"""``proton export --to kineto``: timelines as torch.profiler writes them, a file for each rank."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, cast

from proton_bench.cli.boundary import warn
from proton_bench.cli.output_file import STDOUT, refuse_input
from proton_bench.cli.timelines.suffixes import CHROME, PERFETTO
from proton_bench.errors import OutputError, UsageError
from proton_bench.formats.chrome.kineto_file import KinetoFile, base_of
from proton_bench.formats.timeline.file import read_slices
from proton_bench.formats.timeline.slices import TimelineSlice
from proton_bench.support.files import opened_output, unwritable
from proton_bench.support.inputs import unreadable
from proton_bench.support.text import visible

__all__ = ["export_kineto"]

_SUFFIXES = (".json.gz", ".json")
_LEVEL = 6  # of gzip
_MOST_RANKS = 4096  # files that are open at once


def export_kineto(files: Sequence[Path], output: Path | None) -> list[Path]:
    """Write ``rank<N>.json.gz`` for each rank, and return what was written.

    Args:
        files: Timelines, or profiles beside which their timelines lie.
        output: Folder for the files, or the file if there is one rank. None: beside the first.

    Raises:
        UsageError: A file is not a timeline, or holds no slice.
        ProfileFormatError: A file is damaged.
        OutputError: A file cannot be written.
    """
    timelines = [_timeline_of(file) for file in files]
    with ExitStack() as opened:
        export = _Export(opened, timelines, output)
        for file in timelines:
            _read(file, export)
        return export.finish()


def _read(file: Path, export: _Export) -> None:
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
        self._paths: list[Path] = []
        if output == STDOUT:
            raise UsageError("--to kineto writes a file for each rank: name a folder with -o")

    def take(self, found: TimelineSlice) -> None:
        """Write a slice into the file of its rank."""
        rank = found.origin.rank or 0
        file = self._files.get(rank)
        if file is None:
            file = self._begin(rank, found)
        file.add(found)

    def finish(self) -> list[Path]:
        """Finish the files; they get their names when their exit stack closes."""
        if not self._files:
            raise UsageError(f"{visible(self._inputs[0])} holds no slice")
        for file in self._files.values():
            file.close()
        return self._paths

    def _begin(self, rank: int, found: TimelineSlice) -> KinetoFile:
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
        self._paths.append(path)
        self._files[rank] = KinetoFile(stream, found.origin, self._base_ns)
        return self._files[rank]

    def _folder(self) -> Path:
        try:
            self._output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self._output, error) from None
        return self._output


def _timeline_of(file: Path) -> Path:
    """Return the file if it is a timeline, else the timeline beside the profile.

    Raises:
        UsageError: There is none.
    """
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

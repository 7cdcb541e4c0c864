"""A spool: a folder where others only write files, which are added once they are complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proton_bench.errors import UsageError
from proton_bench.model.origin import is_partial_name
from proton_bench.store.adding.ingest import find_files
from proton_bench.support.files import FileState, file_state
from proton_bench.support.text import visible

# What changes when a file is written or replaced.


@dataclass(slots=True)
class Spool:
    """The files of a folder, each until it was taken.

    A file is complete if it is the same at two looks. That needs no clock in common with the
    machines that write, nor any word from them. Partial files stay: the complete ones of their runs
    may still come, and both would count.

    Attributes:
        folder: The folder; files are looked for in all folders below too.
    """

    folder: Path
    _seen: Mapping[Path, FileState] = field(default_factory=dict)
    _taken: dict[Path, FileState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise UsageError(f"the spool {visible(self.folder)} is not a folder")

    def take(self) -> list[Path]:
        """Return the files that are as they were at the last look, and were not taken like that."""
        now = {
            file: state
            for file in find_files([self.folder])
            if not is_partial_name(file.name) and (state := file_state(file))
        }
        found = [
            file
            for file, state in now.items()
            if self._seen.get(file) == state != self._taken.get(file)
        ]
        self._seen = now
        taken = self._taken | {file: now[file] for file in found}
        self._taken = {file: state for file, state in taken.items() if file in now}
        return found

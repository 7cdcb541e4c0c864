"""What a recording prints at its end: the first answer of what it recorded."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from proton_bench.recording.stderr import shown_path, warn

if TYPE_CHECKING:
    from proton_bench.model.profile import Profile


# Files that hold everything, the fastest to read first.
_SUFFIXES = (".proton", ".pftrace", ".hatchet", ".hatchet_msgpack")
# A larger file would keep the prompt waiting for a second and more.
_MOST_BYTES = 16 << 20
_PIPED_WIDTH = 200
MOST_LINES = 9  # and one that names the files


def best_file(paths: Sequence[str]) -> str | None:
    """Return the file of a recording that is best to read, None if none can be read.

    What went through a pipe is another's.
    """
    for suffix in _SUFFIXES:
        for path in paths:
            if path.endswith(suffix) and os.path.isfile(path):
                return path
    return None


def summarize_file(paths: Sequence[str], folder: str, most: int = MOST_LINES) -> None:
    """Print the summary of a recording that was just written; of a large one none.

    Args:
        paths: Its files.
        folder: Current folder of the command, for the names of files.
        most: Lines at most.
    """
    path = best_file(paths)
    if path is None or os.path.getsize(path) > _MOST_BYTES:
        return

    def read() -> Profile:
        from proton_bench.formats.registry import read_steps

        return read_steps([path])[0]

    print_summary(read, shown_path(path, folder), most)


def print_summary(read: Callable[[], Profile], file: str = "", most: int = MOST_LINES) -> None:
    """Print a summary on stderr; a failure is a warning.

    Args:
        read: Returns the profile.
        file: Its file for the reader, "" for none.
        most: Lines at most.
    """
    stream = sys.__stderr__
    if stream is None:
        return
    try:
        from proton_bench.support.provided import call

        lines = call("summary", read(), file, _width(stream), most=most)
        stream.write("".join(f"{line}\n" for line in lines))
        stream.flush()
    except Exception as error:  # noqa: BLE001 - the target's modules may be in any state
        warn(f"no summary: {type(error).__name__}: {error}")


def _width(stream: object) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):
        return _PIPED_WIDTH

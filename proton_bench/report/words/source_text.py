"""The text of a local source file, for lines that may have been sampled elsewhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proton_bench.model.profile import Profile

__all__ = ["SourceText", "read_source"]

_MAX_BYTES = 8 << 20  # larger files are not source
# Folders of the kernel, whose files act or reveal processes when they are read.
_NO_SOURCE = ("/proc", "/sys", "/dev", "/run")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A source file.

    Attributes:
        lines: Its lines; empty if there is no such file here.
        note: A warning about the text, or "".
    """

    lines: tuple[str, ...] = ()
    note: str = ""

    def line(self, number: int) -> str | None:
        """Return a line by its number from 1, None if the file has no such line."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else None


def read_source(path: str, profile: Profile, last_line: int, *, root: Path) -> SourceText:
    """Return the text of a file that lines of a profile name.

    It is looked up at its path, then by shorter and shorter ends of its path below the root. A
    profile may be hostile and name any file, so only regular files below the root are read.

    Args:
        path: As in the compiler's output.
        profile: The profile; it knows the folder and the time of the run.
        last_line: The last line that was sampled.
        root: The folder of the source; links are followed only below it.
    """
    for place in _places(path, profile, root):
        text = _read(place, root)
        if text is not None:
            # As compilers count: no other character ends a line.
            lines = tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
            return SourceText(lines, _note(place, path, profile, is_short=last_line > len(lines)))
    return SourceText(
        note=f"the file is not below {root}: lines are shown without their text; "
        "--source-root names another folder"
    )


def _places(path: str, profile: Profile, root: Path) -> Iterator[Path]:
    folder = profile.provenance.get("directory")
    if os.path.isabs(path):
        yield Path(path)
    elif isinstance(folder, str):
        yield Path(folder, path)
    parts = [part for part in Path(path).parts if part not in {os.sep, ".."}]
    for start in range(len(parts)):
        yield Path(root, *parts[start:])


def _read(place: Path, root: Path) -> str | None:
    try:
        whole = place.resolve(strict=True)
        if not whole.is_relative_to(root.resolve()) or any(map(whole.is_relative_to, _NO_SOURCE)):
            return None
        # A file replaced meanwhile must not be a link to elsewhere or a blocking pipe.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        with open(os.open(whole, flags), "rb") as stream:
            facts = os.fstat(stream.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MAX_BYTES:
                return None
            return stream.read(_MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, RuntimeError):  # not readable, not a path, or a loop of links
        return None


def _note(place: Path, path: str, profile: Profile, *, is_short: bool) -> str:
    if is_short:
        return f"text of {place}, which has fewer lines than in the run: it was changed"
    ended = profile.provenance.get("end_time_ns")
    try:
        is_newer = type(ended) is int and place.stat().st_mtime_ns > ended
    except OSError:
        is_newer = False
    if is_newer:
        return f"text of {place}, which was changed after the run: lines may have moved"
    return "" if os.path.abspath(place) == os.path.abspath(path) else f"text of {place}"

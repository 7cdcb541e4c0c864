"""Where a command writes what it makes of a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from proton_bench.errors import UsageError
from proton_bench.formats.registry import formats

__all__ = ["beside", "refuse_input"]


def beside(file: Path, suffix: str) -> Path:
    """Return the path with another suffix than that of its format."""
    suffixes = [each for known in formats() for each in known.suffixes]
    found = max((each for each in suffixes if file.name.endswith(each)), key=len, default="")
    stem = file.name.removesuffix(found) if found != file.name else file.name
    return file.with_name(stem + suffix)


def refuse_input(target: Path, inputs: Iterable[Path]) -> None:
    """Check that the file to write is none of those that are read.

    Raises:
        UsageError: It is one of them.
    """
    if str(target) != "-" and any(_is_same(each, target) for each in inputs):
        raise UsageError(f"{target} is the file to read: name another one with -o")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False

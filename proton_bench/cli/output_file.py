"""Output files of commands that convert a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from proton_bench.errors import UsageError
from proton_bench.support.files import write_file
from proton_bench.support.text import bytes_for

__all__ = [
    "REPORT_SUFFIX",
    "STDOUT",
    "beside",
    "output_option",
    "print_bytes",
    "refuse_input",
    "write_output",
]

STDOUT = Path("-")
REPORT_SUFFIX = ".html"


def output_option(text: str) -> Any:
    """Return the option ``-o`` of commands that convert files.

    Args:
        text: Its help.
    """
    return typer.Option("-o", "--output", metavar="OUT", help=text)


def beside(file: Path, suffix: str) -> Path:
    """Return the path with another suffix."""
    from proton_bench.formats.registry import formats

    suffixes = [each for known in formats() for each in known.suffixes]
    found = max((each for each in suffixes if file.name.endswith(each)), key=len, default="")
    stem = file.name.removesuffix(found) if found != file.name else file.name
    return file.with_name(stem + suffix)


def refuse_input(target: Path, inputs: Iterable[Path]) -> None:
    """Check that the output is not one of the inputs.

    Raises:
        UsageError: It is one of them.
    """
    if str(target) != "-" and any(_is_same(each, target) for each in inputs):
        raise UsageError(
            f"{target} is an input and would be overwritten: name another file with -o"
        )


def print_bytes(content: bytes) -> None:
    """Print to standard output unless it is closed, as with `>&-`."""
    if sys.stdout is None:
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(bytes_for(sys.stdout, content))
    sys.stdout.buffer.flush()


def write_output(file: Path, content: bytes) -> None:
    """Write a file, whole or not at all; `STDOUT` prints it.

    Raises:
        OutputError: It cannot be written.
    """
    if file == STDOUT:
        print_bytes(content)
        return
    write_file(file, content)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False

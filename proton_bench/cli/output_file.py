"""Where a command writes what it makes of a file."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import typer

from proton_bench.baseline.durable import replace
from proton_bench.errors import OutputError, UsageError
from proton_bench.formats.base import display_name
from proton_bench.formats.registry import formats

__all__ = [
    "STDOUT",
    "beside",
    "opened_output",
    "output_option",
    "print_bytes",
    "refuse_input",
    "unwritable",
    "write_output",
]

STDOUT = Path("-")


def output_option(text: str) -> Any:
    """Return the option ``-o`` of commands that make a file of files.

    Args:
        text: What the help says of it.
    """
    return typer.Option("-o", "--output", metavar="OUT", help=text)


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


def print_bytes(content: bytes) -> None:
    """Print to the standard output, unless whoever started us closed it, as `>&-` does."""
    if sys.stdout is None:
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def write_output(file: Path, content: bytes) -> None:
    """Write a file, whole or not at all; `STDOUT` prints it.

    Raises:
        OutputError: It cannot be written.
    """
    if file == STDOUT:
        print_bytes(content)
        return
    try:
        if file.exists() and not file.is_file():
            file.write_bytes(content)  # a device or pipe
        else:
            place = Path(os.path.realpath(file))  # a link stays a link
            replace(place, content, place.with_name(f".{place.name}.{os.getpid()}"))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise unwritable(str(file), error) from None


@contextmanager
def opened_output(file: Path) -> Iterator[IO[bytes]]:
    """Open a file that is there as a whole once the block ends, and not at all if it fails.

    Raises:
        OutputError: It cannot be written.
    """
    place = Path(os.path.realpath(file))  # a link stays a link
    scratch = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        if file.exists() and not file.is_file():
            raise OSError(errno.EINVAL, "it is no file")
        stream = scratch.open("xb")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise unwritable(str(file), error) from None
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(scratch, place)
    except BaseException as error:
        scratch.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, OutputError):
            raise unwritable(str(file), error) from None
        raise


def unwritable(name: str, error: Exception) -> OutputError:
    """Return the error that says why a file cannot be written."""
    reason = getattr(error, "strerror", None) or str(error)
    return OutputError(f"cannot write {display_name(Path(name))}: {reason}; choose another place")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False

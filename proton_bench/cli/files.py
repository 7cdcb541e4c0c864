"""Output files of commands that convert a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock, Timer
from types import TracebackType
from typing import IO, Any, Self

import typer

from proton_bench.errors import UsageError
from proton_bench.store.selection import Selection
from proton_bench.support.files import write_file
from proton_bench.support.inputs import unreadable
from proton_bench.support.text import bytes_for, encode_document, raw

PERFETTO = (".pftrace", ".perfetto-trace", ".pftrace.gz")
CHROME = (".chrome_trace", ".chrome_trace.gz", ".pt.trace.json", ".pt.trace.json.gz")


def is_timeline(file: Path) -> bool:
    """Return whether the suffix of an output is that of timelines that are merged into one."""
    return file.name.endswith(PERFETTO)


def check_profiles(files: Iterable[str | Path]) -> None:
    """Check that each path exists; the reader checks whether it is a profile or a store.

    Raises:
        UsageError: A path does not exist.
    """
    for file in files:
        if Selection.of(file) is not None:
            continue
        try:
            os.stat(file)
        except (OSError, ValueError) as error:
            raise unreadable(Path(file), error, "profile") from None


def first_file(files: Sequence[str]) -> Path:
    """Return the one file that was named.

    Raises:
        UsageError: None or several were named.
    """
    if len(files) != 1:
        named = ", ".join(map(repr, files)) or "none"
        raise UsageError(f"Must specify a file to read, one and only one: got {named}")
    return Path(files[0])


def read_metric_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list; None gives none.

    Raises:
        UsageError: A name is empty.
    """
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"-m {text!r} has an empty name: write names with a comma between them")
    return names


_PATIENCE_S = 1.0
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Shows the step of a command once it has taken a second; nothing where no terminal is.

    Args:
        stream: Where to write; stderr by default.
        patience_s: After how many seconds the line appears.
    """

    def __init__(self, stream: IO[str] | None = None, patience_s: float = _PATIENCE_S) -> None:
        # The steps are ours; the line is moved by sequences that other text must not have.
        self._stream = raw(sys.stderr if stream is None else stream)
        self._step = ""
        self._is_shown = False
        self._lock = Lock()
        self._timer = Timer(patience_s, self._appear)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        """Begin to wait."""
        if self._stream.isatty():
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the line."""
        self._timer.cancel()
        with self._lock:
            if self._is_shown:
                self._stream.write(_CLEAR)
                self._stream.flush()
            self._is_shown = False

    def step(self, text: str) -> None:
        """Say what is done now, such as ``reading``."""
        with self._lock:
            self._step = text
            self._write()

    def _appear(self) -> None:
        with self._lock:
            self._is_shown = not self._timer.finished.is_set()
            self._write()

    def _write(self) -> None:
        if self._is_shown:
            self._stream.write(f"{_CLEAR}proton: {self._step} ...")
            self._stream.flush()


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


def print_document(document: Mapping[str, Any]) -> None:
    """Print a document as one line of JSON."""
    print_bytes(encode_document(document))


def print_reports(*reports: Any) -> None:
    """Print renderables one after the other on the console."""
    from proton_bench.report.text.tree import print_report
    from proton_bench.support.console import open_console

    print_report(open_console(), *reports)


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

"""Shows what a gate said: the one place where commands print a verdict."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proton_bench.errors import OutputError
from proton_bench.gate import GateResult, GateRow, Verdict
from proton_bench.report.document import encode_document
from proton_bench.report.names import visible
from proton_bench.report.quantity import percent_text
from proton_bench.report.theme import open_console

__all__ = ["show_verdict", "write_document"]

_SHOWN = 20


def show_verdict(result: GateResult, json_file: Path | None) -> None:
    """Print a verdict, and write it as JSON where that is asked for.

    Args:
        result: What the gate said.
        json_file: File to write, ``-`` for stdout instead of the text.

    Raises:
        OutputError: The file cannot be written.
    """
    if json_file is not None:
        write_document(result.to_document(), json_file)
    if json_file is None or str(json_file) != "-":
        open_console().print("\n".join(_lines(result)), soft_wrap=True)


def write_document(document: Mapping[str, Any], file: Path) -> None:
    """Write one JSON document to a file, ``-`` for stdout.

    Raises:
        OutputError: It cannot be written.
    """
    content = encode_document(document)
    if str(file) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return
    try:
        file.write_bytes(content)
    except OSError as error:
        raise OutputError(f"cannot write {str(file)!a}: {error.strerror}") from error


def _lines(result: GateResult) -> Iterator[str]:
    counts: dict[Verdict, int] = {}
    for row in result.rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    yield f"{result.verdict}{listed and f': {listed}'}"
    told = [row for row in result.rows if row.verdict is not Verdict.SAME]
    yield from (_row(row) for row in told[:_SHOWN])
    if len(told) > _SHOWN:
        yield f"  and {len(told) - _SHOWN} more"
    for change in result.structure:
        yield f"  {change.verdict:<12} {_path(change.path)}"
    needed = max((row.pairs_needed for row in result.rows), default=0)
    if needed > 0:
        yield f"{needed} pairs of runs would probably decide: --runs {needed}"
    yield from (f"note [{note.reason}]: {visible(note.text, 2000)}" for note in result.notes)


def _row(row: GateRow) -> str:
    interval = f"[{percent_text(row.low)}, {percent_text(row.high)}]"
    reasons = ", ".join(row.reasons)
    return (
        f"  {row.verdict:<12} {_path(row.path)}  {row.metric} {percent_text(row.change)} "
        f"{interval}  ({reasons})"
    )


def _path(path: tuple[str, ...]) -> str:
    return visible(" > ".join(path), 400)

"""A gate on GitHub Actions: annotations, shown beside the code, and the summary of the step."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO

from proton_bench.gate.verdict.result import GateRow, Outcome, SuiteVerdict
from proton_bench.report.ci.gate_markdown import SUMMARY_BYTES, gate_markdown
from proton_bench.report.words.gate_words import headline, notes, row_text, structure_text, why
from proton_bench.support.files import unwritable
from proton_bench.support.text import raw, visible_lines
from proton_bench.support.units import percent_text

__all__ = [
    "MOST",
    "add_to_summary",
    "gate_annotations",
    "resumed",
    "stopped",
    "write_annotations",
]

# The most annotations of each kind that GitHub shows for a step.
MOST = 10
_MAX_MESSAGE = 4000
# A summary with less room than this is not changed.
_LEAST_SUMMARY = 2000
_PYTHON_FRAME = re.compile(r"(?P<file>.+\.py):(?P<line>\d{1,9})@.*", re.DOTALL)


def gate_annotations(outcome: Outcome, *, workspace: str = "") -> list[str]:
    """Return the commands of annotations, errors before warnings, at most ten of each.

    Each says something that no other says: an undecided gate has its headline in place of its
    paths, and a path that got slower stands for all its metrics and for the totals around it.

    Args:
        outcome: What to report.
        workspace: Folder of the checkout; files below it are named relative to it.
    """
    result = outcome.result
    is_decided = result.verdict in {SuiteVerdict.PASS, SuiteVerdict.FAIL}
    said = "" if is_decided else headline(outcome)
    first = [_command("error" if result.exit_code else "warning", said)] if said else []
    errors = list(islice(_errors(outcome, workspace), MOST - len(first)))
    warnings = [
        _command("warning", note, title="proton gate")
        for note in notes(outcome)
        if note.partition(": ")[2] not in said
    ]
    if is_decided:
        warnings += _undecided(outcome, workspace)
    return [*first, *errors, *warnings[: MOST - len(first)]]


def write_annotations(stream: IO[str], outcome: Outcome) -> None:
    """Write the annotations to a stream that GitHub reads, below the escaping of other text."""
    plain = raw(stream)  # these commands are intended, and their data is encoded
    encoding = getattr(plain, "encoding", None) or "utf-8"
    for line in gate_annotations(outcome, workspace=os.environ.get("GITHUB_WORKSPACE", "")):
        plain.write(f"{line.encode(encoding, 'backslashreplace').decode(encoding)}\n")


def add_to_summary(outcome: Outcome) -> None:
    """Add to the summary of the step up to GitHub's limit; GitHub drops a larger one completely.

    Raises:
        OutputError: It cannot be written.
    """
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    if not name:
        return
    try:
        with open(name, "ab") as stream:
            room = SUMMARY_BYTES - stream.tell()
            if room < _LEAST_SUMMARY:
                sys.stderr.write("proton: warning: the step summary is full; nothing was added\n")
                return
            stream.write(visible_lines(gate_markdown(outcome, room)).encode())
    except OSError as error:
        raise unwritable(name, error) from None


def stopped(token: str) -> str:
    """Return the command after which GitHub reads no commands, until `resumed`.

    Names in a report could be commands otherwise.
    """
    return f"::stop-commands::{token}"


def resumed(token: str) -> str:
    """Return the command that ends `stopped`."""
    return f"::{token}::"


def _errors(outcome: Outcome, workspace: str) -> Iterator[str]:
    forbidden = [change for change in outcome.structure if change.fails]
    reached = {change.path for change in forbidden}
    for rows in _by_path(outcome.result.regressions, reached):
        text = "; ".join([row_text(rows[0], outcome), *(_also(row) for row in rows[1:])])
        yield _command("error", text, title="slower", **_place(rows[0].path, workspace))
    for change in forbidden:
        place = _place(change.path, workspace)
        yield _command("error", structure_text(change, outcome), title="structure", **place)


def _undecided(outcome: Outcome, workspace: str) -> Iterator[str]:
    slower = {row.path for row in outcome.result.regressions}
    rows = [row for row in outcome.result.rows if row.is_undecided and row.path not in slower]
    for row, *_ in _by_path(rows, slower):
        text = "; ".join(filter(None, (row_text(row, outcome), why(row, outcome))))
        place = _place(row.path, workspace)
        yield _command("warning", f"{row.verdict}: {text}", title="undecided", **place)


def _by_path(
    rows: Sequence[GateRow], reached: Iterable[tuple[str, ...]] = ()
) -> list[list[GateRow]]:
    """Return the rows of each path, without paths around others and around those reached."""
    found: dict[tuple[tuple[str, ...], int, str], list[GateRow]] = {}
    for row in rows:
        found.setdefault((row.path, row.occurrence, row.device), []).append(row)
    paths = {path for path, *_ in found} | set(reached)
    around = {path[:depth] for path in paths for depth in range(len(path))}
    return [rows for (path, *_), rows in found.items() if path not in around]


def _also(row: GateRow) -> str:
    return f"{row.metric} {percent_text(row.change)}"


def _command(kind: str, message: str, **properties: str) -> str:
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{kind}{f' {given}' if given else ''}::{_data(message[:_MAX_MESSAGE])}"


def _place(path: Sequence[str], workspace: str) -> dict[str, str]:
    """Return file and line of the innermost Python frame of a path, if there is one."""
    for name in reversed(path):
        match = _PYTHON_FRAME.fullmatch(name)
        if match is not None:
            file = match["file"]
            if workspace and file.startswith(f"{workspace.rstrip(os.sep)}{os.sep}"):
                file = os.path.relpath(file, workspace)
            return {"file": file, "line": match["line"]}
    return {}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

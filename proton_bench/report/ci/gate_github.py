"""A gate as annotations of GitHub Actions: lines of its log that it shows beside the code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from proton_bench.gate.judge.outcome import Outcome
from proton_bench.gate.judge.verdict import SuiteVerdict, Verdict
from proton_bench.report.words.gate_words import headline, notes, row_text, structure_text, why

__all__ = ["MOST", "gate_annotations", "resumed", "stopped"]

# The most annotations of each kind that GitHub shows for a step.
MOST = 10
_MAX_MESSAGE = 4000
_PYTHON_FRAME = re.compile(r"(?P<file>.+\.py):(?P<line>\d{1,9})@.*", re.DOTALL)


def gate_annotations(outcome: Outcome, *, workspace: str = "") -> list[str]:
    """Return the commands of annotations, errors before warnings, at most ten of each.

    Args:
        outcome: What to report.
        workspace: Folder of the checkout; files below it are named relative to it.
    """
    verdict = outcome.result.verdict
    errors = list(islice(_errors(outcome, workspace), MOST))
    warnings = list(islice(_warnings(outcome, workspace), MOST))
    if verdict in {SuiteVerdict.PASS, SuiteVerdict.FAIL}:
        return errors + warnings
    first = _command("error" if outcome.result.exit_code else "warning", headline(outcome))
    return [first, *errors[: MOST - 1], *warnings[: MOST - 1]]


def stopped(token: str) -> str:
    """Return the command after which GitHub reads no commands, until `resumed`.

    Names in a report could be commands otherwise.
    """
    return f"::stop-commands::{token}"


def resumed(token: str) -> str:
    """Return the command that ends `stopped`."""
    return f"::{token}::"


def _errors(outcome: Outcome, workspace: str) -> Iterator[str]:
    for row in outcome.result.rows:
        if row.verdict is Verdict.REGRESSED:
            place = _place(row.path, workspace)
            yield _command("error", row_text(row, outcome), title="slower", **place)
    for change in outcome.structure:
        if change.fails:
            place = _place(change.path, workspace)
            yield _command("error", structure_text(change, outcome), title="structure", **place)


def _warnings(outcome: Outcome, workspace: str) -> Iterator[str]:
    for note in notes(outcome):
        yield _command("warning", note, title="proton gate")
    for row in outcome.result.rows:
        if row.is_undecided:
            text = f"{row.verdict}: {row_text(row, outcome)}; "
            text += why(row, outcome)
            yield _command("warning", text, title="undecided", **_place(row.path, workspace))


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

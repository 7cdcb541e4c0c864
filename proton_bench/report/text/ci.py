"""A gate in CI: JUnit XML, and annotations and the summary of the step on GitHub Actions."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO
from xml.etree import ElementTree as Xml

from proton_bench.gate.verdict.result import (
    GateRow,
    Outcome,
    StructuralChange,
    SuiteVerdict,
    Verdict,
)
from proton_bench.report.text.gate import SUMMARY_BYTES, gate_markdown
from proton_bench.report.words.gate import (
    headline,
    notes,
    path_text,
    row_text,
    structure_text,
    why,
)
from proton_bench.support.streams import unwritable
from proton_bench.support.text import raw, visible_lines
from proton_bench.support.units import percent_text

_SUITE = "proton gate"
# Characters that XML 1.0 cannot hold and `visible` does not escape.
_FIRST_COLON = re.compile(rb"^(\s*):(?=:)", re.MULTILINE)
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def gate_junit(outcome: Outcome) -> bytes:
    """Return one test case for the verdict, for each check and for each structural change.

    A regressed path is a failure, an undecided one is skipped, and an obstacle to a verdict is an
    error of the first case; so the file fails exactly if the gate does.
    """
    cases = [_verdict_case(outcome)]
    cases += [_row_case(row, outcome) for row in outcome.result.rows]
    cases += [_structure_case(change, outcome) for change in outcome.structure]
    counts = {
        kind: sum(case.find(kind) is not None for case in cases)
        for kind in ("failure", "error", "skipped")
    }
    facts = {
        "name": _SUITE,
        "tests": str(len(cases)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": "0",
    }
    root = Xml.Element("testsuites", {key: value for key, value in facts.items() if key != "time"})
    suite = Xml.SubElement(root, "testsuite", facts)
    suite.extend(cases)
    Xml.indent(root)
    content: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    # The same text in XML, but not a command in a log that shows it.
    content = _FIRST_COLON.sub(rb"\1&#58;", content.replace(b"##[", b"&#35;#["))
    return content + b"\n"


def _verdict_case(outcome: Outcome) -> Xml.Element:
    result = outcome.result
    case = _case("gate", "verdict")
    said = [headline(outcome), *([outcome.explanation] if outcome.explanation else [])]
    text = "\n".join([*said, *notes(outcome)])
    if result.verdict is SuiteVerdict.FAIL:
        _add(case, "failure", headline(outcome), text=text)
    elif result.exit_code:
        _add(case, "error", headline(outcome), text=text)
    else:
        _said(case, text)
    return case


def _row_case(row: GateRow, outcome: Outcome) -> Xml.Element:
    name = f"{path_text(row.path)} [{row.threshold}]"
    case = _case("timing", f"{name} #{row.occurrence + 1}" if row.occurrence else name)
    text = row_text(row, outcome)
    said = why(row, outcome)
    full = f"{row.verdict}: {text}{f'; {said}' if said else ''}"
    if row.verdict is Verdict.REGRESSED:
        _add(case, "failure", text, text=full)
    elif row.verdict is Verdict.INCONCLUSIVE:
        _add(case, "skipped", f"{row.verdict}: {said or text}")
    else:
        _said(case, full)
    return case


def _structure_case(change: StructuralChange, outcome: Outcome) -> Xml.Element:
    case = _case("structure", f"{change.kind} {path_text(change.path)}")
    text = structure_text(change, outcome)
    if change.fails:
        _add(case, "failure", text, text=text)
    else:
        _said(case, text)
    return case


def _case(kind: str, name: str) -> Xml.Element:
    return Xml.Element(
        "testcase", {"classname": f"{_SUITE}.{kind}", "name": _holdable(name), "time": "0"}
    )


def _add(case: Xml.Element, kind: str, message: str, *, text: str = "") -> None:
    found = Xml.SubElement(case, kind, {"message": _holdable(message)})
    found.text = _holdable(text) or None


def _said(case: Xml.Element, text: str) -> None:
    Xml.SubElement(case, "system-out").text = _holdable(text)


def _holdable(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


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

"""A gate as JUnit XML, which GitLab, Jenkins and Buildkite show."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from proton_bench.gate.verdict.result import (
    GateRow,
    Outcome,
    StructuralChange,
    SuiteVerdict,
    Verdict,
)
from proton_bench.report.words.gate_words import (
    headline,
    notes,
    path_text,
    row_text,
    structure_text,
    why,
)

__all__ = ["gate_junit"]

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

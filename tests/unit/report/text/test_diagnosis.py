from __future__ import annotations

import io
import json

import pytest
from rich.console import Console
from rich.text import Text

from proton_bench.diagnosis.finding import Diagnosis, Finding, Section, Status
from proton_bench.report.text.diagnosis import DiagnosisReport, diagnosis_document
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import encode_document

LONG = "/environment" * 20
DIAGNOSIS = Diagnosis(
    (
        Section(
            "scripts",
            (
                Finding("proton", Status.PROBLEM, LONG, "mend it", provides=("proton",)),
                Finding("[red]\x1b\udc80", Status.OK, "a\nb"),
            ),
        ),
        Section("gpu", (Finding("driver", Status.ABSENT, "none found", provides=("gpu",)),)),
    )
)


def printed(diagnosis: Diagnosis) -> str:
    stream = io.StringIO()
    print_report(open_console(stream), DiagnosisReport(diagnosis))
    return stream.getvalue()


def test_a_pipe_gets_lines_of_a_hundred_columns_with_advice_below() -> None:
    text = printed(DIAGNOSIS)
    lines = [line.split() for line in text.splitlines()]

    assert max(map(len, text.splitlines())) <= 100
    assert LONG in "".join(text.split())
    assert lines[0] == ["scripts"]
    assert lines[1][:2] == ["proton", "problem"]
    assert ["mend", "it"] in lines
    assert ["driver", "absent", "none", "found"] in lines
    assert lines[-1] == ["1", "problem:", "proton"]


def test_names_are_shown_as_text_and_cannot_break_a_line() -> None:
    text = printed(DIAGNOSIS)

    assert r"[red]\x1b\udc80" in text
    assert r"a\nb" in text


def test_a_terminal_folds_and_cuts_nothing() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=60, no_color=True, markup=False)

    print_report(console, DiagnosisReport(DIAGNOSIS))

    lines = Text.from_ansi(stream.getvalue()).plain.splitlines()
    assert max(map(len, lines)) <= 60
    assert LONG in "".join(line.strip() for line in lines)


def test_what_is_said_of_several_things_is_one_line() -> None:
    names = ("store", "fleet", "torch")
    findings = [Finding(name, Status.OK, "installed", provides=(name,)) for name in names]
    findings[1:1] = [Finding("hatchet", Status.ABSENT, "missing: x", "pip install x")]
    findings += [Finding(name, Status.OK, "1.0") for name in ("a", "b")]

    lines = printed(Diagnosis((Section("extras", tuple(findings)),))).splitlines()

    assert [line.split() for line in lines[1:-2]] == [
        ["installed", "ok", "store,", "fleet,", "torch"],
        ["hatchet", "absent", "missing:", "x"],
        ["pip", "install", "x"],
        ["a", "ok", "1.0"],
        ["b", "ok", "1.0"],
    ]


def test_no_problem_is_said() -> None:
    assert printed(Diagnosis(())).strip() == "No problems found."


def test_the_document_is_versioned_and_answers_what_was_required() -> None:
    document = json.loads(encode_document(diagnosis_document(DIAGNOSIS, ["gpu", "proton"])))

    assert (document["schema"], document["version"]) == ("proton_bench.doctor", [1, 0])
    assert document["required"] == {"gpu": False, "proton": False}
    assert document["problems"] == 1
    (driver,) = document["sections"][1]["findings"]
    assert driver == {
        "name": "driver",
        "status": "absent",
        "value": "none found",
        "advice": "",
        "provides": ["gpu"],
    }


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_a_colour(status: Status) -> None:
    diagnosis = Diagnosis((Section("x", (Finding("y", status, "z"),)),))

    assert status.value in printed(diagnosis)

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from fakes.outcomes import every_outcome, hostile_outcome, outcome, row, structural, undecided

from proton_bench.gate.verdict.result import GateRow, SuiteVerdict, Verdict
from proton_bench.report.text.ci import (
    MOST,
    add_to_summary,
    gate_annotations,
    gate_junit,
    resumed,
    stopped,
    write_annotations,
)
from proton_bench.support.text import SafeStream


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("pass", []),
        (
            "fail",
            [
                "::error title=slower::step > softmax: median 5.0 %25 slower",
                "::warning title=undecided::INCONCLUSIVE: step > noisy",
                "::warning title=undecided::INCONCLUSIVE: step > unknown",
            ],
        ),
        ("structure", ["::error title=structure::LAUNCHES step > more, 4 -> 6 calls"]),
        (
            "incomparable",
            ["::error::INCOMPARABLE: GPU name"],
        ),
        ("no-baseline", ["::error::NO-BASELINE: there is no baseline 'main'"]),
        ("error", ["::error::ERROR: x.proton is corrupt"]),
    ],
)
def test_annotations_say_what_is_wrong(name: str, lines: list[str]) -> None:
    found = gate_annotations(every_outcome()[name])

    assert len(found) == len(lines)
    assert [text[: len(line)] for text, line in zip(found, lines, strict=True)] == lines


def test_a_gate_that_passes_undecided_only_warns() -> None:
    shown = outcome(SuiteVerdict.INCONCLUSIVE, undecided(), inconclusive_passes=True)

    assert {line.split("::")[1].split()[0] for line in gate_annotations(shown)} == {"warning"}


@pytest.mark.parametrize(
    ("verdict", "rows", "structure", "said"),
    [
        # A path by two metrics, and the totals around it.
        (
            SuiteVerdict.FAIL,
            [
                row(Verdict.REGRESSED, path=("fit", "conv")),
                row(Verdict.REGRESSED, path=("fit", "conv"), metric="total", change=0.07),
                row(Verdict.REGRESSED, path=("fit",), metric="total"),
                row(Verdict.REGRESSED, path=(), metric="total"),
            ],
            (),
            ["fit > conv: median 5.0 %25 slower"],
        ),
        # A scope that is slower because of what is new in it.
        (
            SuiteVerdict.FAIL,
            [row(Verdict.REGRESSED, path=("fit",), metric="total")],
            (structural(path=("fit", "copy"), fails=True),),
            ["LAUNCHES fit > copy"],
        ),
        # Two paths are two facts, also with equal names.
        (
            SuiteVerdict.FAIL,
            [
                row(Verdict.REGRESSED, path=("fit", "conv")),
                row(Verdict.REGRESSED, path=("fit", "conv"), occurrence=1),
                row(Verdict.REGRESSED, path=("test", "conv")),
            ],
            (),
            ["fit > conv: median", "fit > conv: median", "test > conv: median"],
        ),
        # The headline of an undecided gate has the number of its checks.
        (
            SuiteVerdict.INCONCLUSIVE,
            [undecided("conv"), undecided("conv", metric="total"), undecided("gemm")],
            (),
            ["INCONCLUSIVE: 3 of 3 checks may be slower than allowed"],
        ),
    ],
)
def test_a_fact_is_one_annotation(
    verdict: SuiteVerdict, rows: list[GateRow], structure: Any, said: list[str]
) -> None:
    found = gate_annotations(outcome(verdict, *rows, structure=structure))

    assert len(found) == len(said)
    for line, text in zip(found, said, strict=True):
        assert text in line


def test_other_metrics_of_a_slower_path_stand_in_its_annotation() -> None:
    both = [row(Verdict.REGRESSED, "conv", metric=name) for name in ("median", "tail")]

    (line,) = gate_annotations(outcome(SuiteVerdict.FAIL, *both))

    assert line.endswith("; tail +5.0 %25")


@pytest.mark.parametrize("verdict", [SuiteVerdict.FAIL, SuiteVerdict.INCONCLUSIVE])
def test_there_are_ten_of_each_kind_at_most_worst_first(verdict: SuiteVerdict) -> None:
    rows = [row(Verdict.REGRESSED, f"k{place}") for place in range(30)]
    rows += [undecided(f"n{place}") for place in range(30)]

    found = gate_annotations(outcome(verdict, *rows, structure=(structural(fails=True),)))

    for kind in ("error", "warning"):
        assert sum(line.startswith(f"::{kind}") for line in found) <= MOST
    assert "k0" in "".join(found[:2])


def test_every_annotation_is_one_command_whatever_the_names() -> None:
    for line in gate_annotations(hostile_outcome()):
        assert line.count("\n") == line.count("\r") == line.count("\x1b") == 0
        assert line.startswith(("::error ", "::warning "))
        assert "%0A" not in line.replace("%250A", "")


def test_the_innermost_python_frame_is_the_place() -> None:
    path = ("/repo/src/a,b:c.py:3@outer", "/repo/src/a,b:c.py:12@inner", "kernel")
    shown = outcome(SuiteVerdict.FAIL, row(Verdict.REGRESSED, path=path))

    (line,) = gate_annotations(shown, workspace="/repo/")
    (elsewhere,) = gate_annotations(shown, workspace="/other")

    assert line.startswith("::error title=slower,file=src/a%2Cb%3Ac.py,line=12::")
    assert "file=/repo/src/" in elsewhere


def test_commands_are_stopped_and_resumed_with_one_token() -> None:
    assert (stopped("abc"), resumed("abc")) == ("::stop-commands::abc", "::abc::")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_github_gets_commands_through_a_stream_that_escapes_them(encoding: str) -> None:
    out = io.BytesIO()
    stream = SafeStream(io.TextIOWrapper(out, encoding=encoding))
    slower = outcome(SuiteVerdict.FAIL, row(Verdict.REGRESSED, "café"))

    stream.write("::error::a name\n")
    write_annotations(stream, slower)
    stream.flush()

    escaped, command, end = out.getvalue().split(b"\n")
    assert (escaped, end) == (b":\\:error::a name", b"")
    assert command.startswith(b"::error title=slower::step > caf")


def test_a_summary_is_added_to_what_the_step_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))

    add_to_summary(every_outcome()["fail"])

    assert file.read_text(encoding="utf-8").startswith("before\n<!-- proton gate -->\n### FAIL")


def cases(name: str) -> list[Xml.Element]:
    return Xml.fromstring(gate_junit(every_outcome()[name])).findall("testsuite/testcase")


def kinds(name: str) -> list[str]:
    return [case[0].tag for case in cases(name)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pass", ["system-out", "system-out", "system-out"]),
        (
            "fail",
            ["failure", "failure", "skipped", "skipped"]
            + ["system-out", "system-out", "system-out"],
        ),
        ("structure", ["failure", "system-out", "failure"]),
        ("inconclusive", ["error", "skipped"]),
        ("void", ["error", "system-out"]),
        ("incomparable", ["error"]),
        ("no-baseline", ["error"]),
        ("error", ["error"]),
    ],
)
def test_a_case_for_the_verdict_each_check_and_each_structural_change(
    name: str, expected: list[str]
) -> None:
    assert kinds(name) == expected


@pytest.mark.parametrize("name", every_outcome())
def test_counts_are_those_of_the_cases_and_red_means_red(name: str) -> None:
    (suite,) = Xml.fromstring(gate_junit(every_outcome()[name]))

    found = kinds(name)
    assert suite.get("tests") == str(len(found))
    assert suite.get("failures") == str(found.count("failure"))
    assert suite.get("errors") == str(found.count("error"))
    is_red = found.count("failure") + found.count("error") > 0
    assert is_red == (every_outcome()[name].result.exit_code != 0)


def test_a_regression_says_what_happened() -> None:
    case = cases("fail")[1]

    assert case.get("classname") == "proton gate.timing"
    assert case.get("name") == "step > softmax [median:3%]"
    assert (case[0].get("message") or "").startswith("step > softmax: median 5.0 % slower")


def test_hostile_names_are_text() -> None:
    content = gate_junit(hostile_outcome())
    root = Xml.fromstring(content)

    assert b"<script>" not in content
    messages = [each.get("message") or "" for each in root.iter("failure")]
    assert any("<script>[" in message for message in messages)
    assert "\x1b" not in content.decode()

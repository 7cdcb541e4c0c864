from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest
from fakes.outcomes import every_outcome, hostile_outcome

from proton_bench.report.text.ci import gate_junit


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

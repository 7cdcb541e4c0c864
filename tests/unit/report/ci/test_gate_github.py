from __future__ import annotations

import pytest
from fakes.outcomes import every_outcome, hostile_outcome, outcome, row, structural, undecided

from proton_bench.gate.judge.verdict import SuiteVerdict, Verdict
from proton_bench.report.ci.gate_github import MOST, gate_annotations, resumed, stopped


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
        ("structure", ["::error title=structure::LAUNCHES step > more, 4 -> 6 launches"]),
        (
            "incomparable",
            ["::error::INCOMPARABLE: GPU name", "::warning title=proton gate::not-comparable"],
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

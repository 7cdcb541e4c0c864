from __future__ import annotations

import io

import pytest
from fakes.outcomes import HOSTILE, every_outcome, hostile_outcome, outcome, row

from proton_bench.gate.verdict.result import Outcome, SuiteVerdict, Verdict
from proton_bench.report.text.gate import GateReport
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console


class Terminal(io.StringIO):
    """A terminal in memory."""

    def isatty(self) -> bool:
        return True


def printed(shown: Outcome, *, everything: bool = False) -> list[str]:
    file = io.StringIO()
    print_report(open_console(file), GateReport(shown, everything))
    return file.getvalue().splitlines()


def test_report_down_to_its_table() -> None:
    lines = printed(every_outcome()["fail"])

    assert lines[:6] == [
        "FAIL: step > softmax: median 5.0 % slower (+4.0 % to +6.0 %), 100 us -> 105 us; "
        "1 of 4 checks regressed",
        "whole run: +0.5 % (+5 us): 98 % of it is softmax under step",
        "base  6 runs: 0.proton, 1.proton, 2.proton and 3 more in base",
        " new  6 runs: 0.proton, 1.proton, 2.proton and 3 more in new",
        "      recorded in turn",
        "",
    ]
    assert [" ".join(line.split()) for line in lines[6:10]] == [
        "verdict change 95 % interval share base (us) new (us) threshold path",
        "REGRESSED +5.0 % +4.0 % .. +6.0 % 10.0 % 100.000 105.000 median:3% step > softmax",
        "INCONCLUSIVE +5.0 % -2.0 % .. +12.0 % 10.0 % 100.000 105.000 median:3% step > "
        "noisy a run varies by 3.0 %; needs 14 pairs in all",
        "INCONCLUSIVE - - 10.0 % - - median:3% step > unknown not recorded or not positive, "
        "choose another metric",
    ]


def test_report_of_structure_and_of_what_is_the_same() -> None:
    lines = printed(every_outcome()["fail"])

    assert lines[lines.index("Structure, whose cost counts in the totals") :] == [
        "Structure, whose cost counts in the totals",
        "  LAUNCHES step > more, 4 -> 6 calls, +8 us, 2.0 % of a base run",
        "  NEW new, 0 -> 6 calls, +8 us, 2.0 % of a new run",
        "",
        "1 more check; --all shows all",
    ]


def test_everything_shows_what_is_the_same() -> None:
    lines = printed(every_outcome()["fail"], everything=True)

    assert any(line.startswith("SAME") for line in lines)
    assert not any("--all" in line for line in lines)


@pytest.mark.parametrize("name", every_outcome())
def test_each_verdict_is_the_first_word(name: str) -> None:
    shown = every_outcome()[name]

    assert printed(shown)[0].split(":")[0] == str(shown.result.verdict)


def test_names_are_text_and_no_line_begins_with_one() -> None:
    lines = printed(hostile_outcome(), everything=True)
    text = "\n".join(lines)

    assert "\x1b" not in text
    assert "[/bold]" in text
    assert HOSTILE not in text
    assert not any(line.lstrip().startswith(("::", "##")) for line in lines)


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_a_terminal_costs_columns_before_names(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    file = Terminal()
    console = open_console(file)
    console.width = width
    shown = outcome(SuiteVerdict.FAIL, row(Verdict.REGRESSED, "a_very_long_kernel_name" * 4))

    print_report(console, GateReport(shown))

    (line,) = [each for each in file.getvalue().splitlines() if "REGRESSED" in each]
    assert "step" in line
    assert ("100.000" in line) == (width == 120)

from __future__ import annotations

import io
import json
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest
from fakes.outcomes import (
    HOSTILE,
    every_outcome,
    hostile_outcome,
    outcome,
    row,
    structural,
    undecided,
)
from fakes.runs import profiles
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.analysis.run import Run
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import Outcome, SuiteVerdict, Verdict
from proton_bench.model.profile import Profile
from proton_bench.report.text.ci import gate_annotations, gate_junit
from proton_bench.report.text.gate import (
    COMMENT_BYTES,
    MARK,
    SUMMARY_BYTES,
    GateReport,
    gate_document,
    gate_markdown,
)
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import encode_document


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


@pytest.mark.parametrize("name", every_outcome())
def test_document_names_its_schema_version_verdict_and_exit_code(name: str) -> None:
    shown = every_outcome()[name]

    document = json.loads(encode_document(gate_document(shown)))

    assert (document["schema"], document["version"]) == ("proton_bench.gate", [3, 0])
    assert document["verdict"] == str(shown.result.verdict)
    assert document["exit_code"] == shown.result.exit_code
    assert document["headline"].startswith(document["verdict"])
    assert document["error"] == (shown.problem or None)


def test_rows_hold_null_for_what_is_not_known() -> None:
    rows = json.loads(encode_document(gate_document(every_outcome()["fail"])))["rows"]

    assert [row["verdict"] for row in rows] == ["REGRESSED", "INCONCLUSIVE", "INCONCLUSIVE", "SAME"]
    assert rows[2]["change"] is None


def test_names_that_are_not_utf8_are_escaped() -> None:
    document = json.loads(encode_document(gate_document(hostile_outcome())))

    assert document["base_runs"][0].startswith("<script>")
    assert "\\ud800" in document["base_runs"][0]


def test_page_as_a_whole() -> None:
    assert gate_markdown(every_outcome()["fail"]).splitlines() == [
        MARK,
        "### FAIL: step &gt; softmax: median 5.0 % slower (+4.0 % to +6.0 %), 100 us -&gt; "
        "105 us; 1 of 4 checks regressed",
        "",
        "Whole run: +0.5 % (+5 us): 98 % of it is softmax under step",
        "",
        "- base: 6 runs: 0.proton, 1.proton, 2.proton and 3 more in base",
        "- new: 6 runs: 0.proton, 1.proton, 2.proton and 3 more in new",
        "",
        "| verdict | change | 95 % interval | share | base (us) | new (us) | threshold "
        "| path | why |",
        "| :-- | --: | --: | --: | --: | --: | --: | :-- | :-- |",
        "| REGRESSED | +5.0 % | +4.0 % .. +6.0 % | 10.0 % | 100.000 | 105.000 | median:3% "
        "| step &gt; softmax |  |",
        "| INCONCLUSIVE | +5.0 % | -2.0 % .. +12.0 % | 10.0 % | 100.000 | 105.000 | "
        "median:3% | step &gt; noisy | a run varies by 3.0 %; needs 14 pairs in all |",
        "| INCONCLUSIVE | - | - | 10.0 % | - | - | median:3% | step &gt; unknown "
        "| not recorded or not positive, choose another metric |",
        "",
        "Structure, whose cost counts in the totals:",
        "",
        "- LAUNCHES step &gt; more, 4 -&gt; 6 calls, +8 us, 2.0 % of a base run",
        "- NEW new, 0 -&gt; 6 calls, +8 us, 2.0 % of a new run",
        "",
        "<details><summary>1 more check</summary>",
        "",
        "| verdict | change | 95 % interval | share | base (us) | new (us) | threshold "
        "| path | why |",
        "| :-- | --: | --: | --: | --: | --: | --: | :-- | :-- |",
        "| SAME | +5.0 % | +4.0 % .. +6.0 % | 10.0 % | 100.000 | 105.000 | median:3% "
        "| step &gt; calm |  |",
        "",
        "</details>",
    ]


@pytest.mark.parametrize("name", every_outcome())
def test_each_verdict_is_the_heading(name: str) -> None:
    shown = every_outcome()[name]

    assert gate_markdown(shown).splitlines()[1].startswith(f"### {shown.result.verdict}: ")


def test_names_are_text_and_stay_in_their_cells() -> None:
    text = gate_markdown(hostile_outcome())

    for forbidden in ("<script>", "@me", "\x1b", "\ufffd|"):
        assert forbidden not in text
    (row_line,) = [each for each in text.splitlines() if each.startswith("| REGRESSED")]
    assert row_line.replace("\\|", "").count("|") == 10
    assert not any(line.startswith("::") for line in text.splitlines())


@pytest.mark.parametrize("limit", [COMMENT_BYTES, SUMMARY_BYTES])
def test_large_pages_are_cut_worst_first_and_say_so(limit: int) -> None:
    wide = "\N{SNOWMAN}" * 60
    rows = [
        *(row(Verdict.REGRESSED, f"worst {place} {wide}") for place in range(1500)),
        *(undecided(f"undecided {place}") for place in range(1000)),
        *(row(name=f"calm {place}") for place in range(1000)),
    ]
    changes = tuple(structural(path=(f"more {place}",)) for place in range(5000))

    text = gate_markdown(outcome(SuiteVerdict.FAIL, *rows, structure=changes), limit)

    assert len(text.encode()) <= limit
    assert "worst 0" in text
    assert "calm 999" not in text
    assert "Not shown for lack of space: " in text
    assert text.count("<details>") == text.count("</details>") == 1


def test_what_fits_is_not_said_to_be_cut() -> None:
    assert "Not shown" not in gate_markdown(every_outcome()["fail"])


POLICIES = (
    Policy(),
    Policy(share=1e-9).with_thresholds(["median:3%", "calls:0", "total:1us"]),
    Policy().with_thresholds(["p95:5%", "mem:5%", "gbps:1%", "**@mean:5%"]),
)


def renamed(profile: Profile, text: str) -> Profile:
    """Return the profile with a hostile name for whatever had the first one."""
    strings = tuple(text if each == "a" else each for each in profile.strings)
    return replace(profile, strings=strings)


@settings(deadline=None, max_examples=how_many(120, 30))
@given(
    st.lists(profiles(), min_size=1, max_size=4),
    st.lists(profiles(), min_size=1, max_size=4),
    st.sampled_from(POLICIES),
)
def test_every_output_holds_every_gate(
    base: list[Profile], new: list[Profile], policy: Policy
) -> None:
    name = HOSTILE.replace("\ud800", "")
    before, after = (
        [Run(renamed(profile, name), f"{place}.proton") for place, profile in enumerate(side)]
        for side in (base, new)
    )
    outcome = Outcome(gate_result(before, after, policy), explanation="+1 %")
    verdict = str(outcome.result.verdict)

    document = json.loads(encode_document(gate_document(outcome)))
    text = gate_markdown(outcome)
    root = Xml.fromstring(gate_junit(outcome))
    printed = io.StringIO()
    print_report(open_console(printed), GateReport(outcome, everything=True))

    assert document["verdict"] == verdict
    assert text.splitlines()[1].startswith(f"### {verdict}: ")
    assert printed.getvalue().startswith(f"{verdict}: ")
    is_red = bool([*root.iter("failure"), *root.iter("error")])
    assert is_red == bool(outcome.result.exit_code)
    assert any("::error" in each[:9] for each in gate_annotations(outcome)) == is_red
    assert not any("\x1b" in each for each in (text, printed.getvalue()))


@pytest.mark.parametrize("limit", [700, 1500, 5000])
def test_markdown_keeps_any_limit(limit: int) -> None:
    assert len(gate_markdown(hostile_outcome(), limit).encode()) <= limit

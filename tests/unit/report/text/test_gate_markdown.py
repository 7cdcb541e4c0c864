from __future__ import annotations

import pytest
from fakes.outcomes import every_outcome, hostile_outcome, outcome, row, structural, undecided

from proton_bench.gate.verdict.result import SuiteVerdict, Verdict
from proton_bench.report.text.gate import COMMENT_BYTES, MARK, SUMMARY_BYTES, gate_markdown


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

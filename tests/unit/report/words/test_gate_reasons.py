from __future__ import annotations

import math

import pytest
from fakes.outcomes import row, undecided

from proton_bench.gate.judge.verdict import Reason, Verdict
from proton_bench.report.words.gate_reasons import MEANINGS, part_text, reasons_text, seen_text


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (0.05, "5.0 %"),
        (-0.051, "5.1 %"),
        (1.5, "150 %"),
        (1e-5, "<0.1 %"),
        (0.0, "0 %"),
        (math.nan, "-"),
        (math.inf, "inf %"),
    ],
)
def test_parts_are_percentages(part: float, text: str) -> None:
    assert part_text(part) == text


def test_a_row_that_cannot_see_its_threshold_says_what_it_could_see() -> None:
    assert reasons_text(undecided(), paired=True) == (
        "the noise is 3.0 %: changes below 7.1 % cannot be seen here; needs 14 pairs in all"
    )


def test_a_change_beyond_the_noise_is_not_said_to_be_hidden_by_it() -> None:
    assert reasons_text(undecided(change=0.2, pairs_needed=6), paired=True) == (
        "so few runs can all be slow by chance; needs 6 pairs in all"
    )


@pytest.mark.parametrize("detectable", [10.0, 6e9, math.inf, math.nan])
def test_changes_that_nobody_needs_a_gate_for_are_no_number(detectable: float) -> None:
    blind = undecided(detectable=detectable)

    assert seen_text(blind) == "-"
    assert "changes below" not in reasons_text(blind, paired=True)


@pytest.mark.parametrize(
    ("pairs", "paired", "text"),
    [
        (14, True, "needs 14 pairs in all"),
        (14, False, "needs 14 runs on each side"),
        (-1, True, "needs too many runs to be practical"),
        (0, True, "more runs do not help"),
    ],
)
def test_what_is_undecided_says_what_would_decide(pairs: int, paired: bool, text: str) -> None:
    assert reasons_text(undecided(pairs_needed=pairs), paired=paired).endswith(text)


def test_a_certain_change_below_the_threshold_is_said() -> None:
    slower = row(Verdict.SAME, limit=0.03, change=0.028, p_worse=1e-6)

    assert reasons_text(slower, paired=True) == "worse, but by less than the threshold of 3.0 %"


@pytest.mark.parametrize("verdict", [Verdict.REGRESSED, Verdict.SAME])
def test_what_is_decided_needs_no_word(verdict: Verdict) -> None:
    assert reasons_text(row(verdict, detectable=0.2), paired=True) == ""

from __future__ import annotations

import math

import pytest
from fakes.outcomes import row, undecided

from proton_bench.gate.verdict.result import Reason, Verdict
from proton_bench.report.words.gate import MEANINGS, reasons_text


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)


def test_an_undecided_row_says_how_noisy_it_is_and_what_would_decide() -> None:
    assert reasons_text(undecided(noise=0.043, pairs_needed=12), paired=True) == (
        "a run varies by 4.3 %; needs 12 pairs in all"
    )


def test_pairs_that_may_all_be_slow_by_chance_say_so() -> None:
    assert reasons_text(undecided(change=0.6, findable=math.inf, pairs_needed=8), paired=True) == (
        "so few runs can all be slow by chance; needs 8 pairs in all"
    )


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
    assert reasons_text(row(verdict), paired=True) == ""

from __future__ import annotations

from typing import Any

import pytest

from proton_bench.model.members import RankGaps
from proton_bench.model.provenance import Provenance
from proton_bench.report.words.header import gap_sentences, gaps_of, rank_text, ranks_text


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "rank 3"),
        ([0, 1, 2, 5], "ranks 0 to 2, 5"),
        ([1, 2], "ranks 1 to 2"),
        (list(range(0, 40, 2)), "ranks 0, 2, 4, 6, 8, 10, 12, 14, and 12 more"),
    ],
)
def test_runs_of_ranks_are_joined(ranks: list[int], text: str) -> None:
    assert ranks_text(ranks) == text


def test_what_is_missing_is_said_in_sentences() -> None:
    assert list(gap_sentences(RankGaps(4, (0, 3), (1, 2), (3,)))) == [
        "ranks 1 to 2 of 4 are missing",
        "rank 3 of 4 is partial: its file was written before the run ended",
    ]
    assert list(gap_sentences(RankGaps(2, (0, 1)))) == []


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, ""),
        ({"rank": 2}, "rank 2"),
        ({"rank": 2, "world_size": 4}, "rank 2 of 4"),
        ({"rank": "?", "world_size": 4}, ""),
        (
            {"ranks": {"world_size": 4, "present": [0, 1], "missing": [], "partial": []}},
            "ranks 0 to 1 of 4",
        ),
    ],
)
def test_a_profile_says_which_ranks_it_holds(facts: dict[str, Any], text: str) -> None:
    assert rank_text(Provenance(facts)) == text


@pytest.mark.parametrize("odd", [None, 3, {}, {"present": 4, "world_size": "x", "missing": ["a"]}])
def test_odd_provenance_is_not_a_gap(odd: Any) -> None:
    assert gaps_of(Provenance({"ranks": odd})) == RankGaps()

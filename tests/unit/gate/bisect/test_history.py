from __future__ import annotations

import pytest

from proton_bench.errors import UsageError
from proton_bench.gate.bisect import history as module
from proton_bench.gate.bisect.history import Candidate, History


def test_a_merge_contains_both_of_its_branches() -> None:
    history = History(
        [
            Candidate("a"),
            Candidate("b", parents=(0,)),
            Candidate("c", parents=(0,)),
            Candidate("merge", parents=(1, 2)),
        ]
    )

    assert history.contains.tolist() == [
        [True, False, False, False],
        [True, True, False, False],
        [True, False, True, False],
        [True, True, True, True],
    ]
    assert history.bad == 3


def test_nothing_to_search_is_wrong_usage() -> None:
    with pytest.raises(UsageError):
        History([])


def test_a_history_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REVISIONS", 2)

    with pytest.raises(UsageError, match="--first-parent"):
        History([Candidate(str(n)) for n in range(3)])

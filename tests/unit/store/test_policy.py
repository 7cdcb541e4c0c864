from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.errors import OutputError, UsageError
from proton_bench.store.retention import POLICY_FILE, Policy, read_policy
from proton_bench.store.store import Store


def test_without_a_file_everything_is_kept(store: Store) -> None:
    policy = read_policy(store)

    assert (policy.rank_days, policy.leave_out) == (None, frozenset())


def test_a_file_changes_what_it_names(store: Store) -> None:
    Path(store.uri, POLICY_FILE).write_text('rank_days = 30\nleave_out = ["host"]\n')

    assert read_policy(store) == Policy(30, 14, frozenset({"host"}))


@pytest.mark.parametrize(
    "content",
    [
        "rank_days = 3",
        "raw_days = -1\nrank_days = 9",
        'leave_out = ["job"]',
        'leave_out = "host"',
        "weeks = 3",
        "raw_days = ",
        "raw_days = 14.5",
        "\xff",
        f"# {'too long' * 10_000}",
    ],
)
def test_a_wrong_file_is_refused(store: Store, content: str) -> None:
    Path(store.uri, POLICY_FILE).write_text(content, "latin-1")

    with pytest.raises(UsageError):
        read_policy(store)


def test_what_is_no_file_is_not_the_default_policy(store: Store) -> None:
    place = Path(store.uri, POLICY_FILE)
    place.mkdir()
    with pytest.raises(OutputError, match="directory"):
        read_policy(store)
    place.rmdir()
    place.symlink_to("nowhere")
    with pytest.raises(OutputError, match="No such file"):
        read_policy(store)

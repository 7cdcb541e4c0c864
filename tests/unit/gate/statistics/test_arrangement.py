from __future__ import annotations

import pytest
from fakes.gated import Kernel, profile_of_times, session

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.statistics.arrangement import arrange, paired_as

KERNELS = [Kernel("k")]


def at(*spans: tuple[int, int], host: object = "here") -> list[Run]:
    return [
        Run(
            profile_of_times(
                {"k": [1.0]},
                provenance={"start_time_ns": start, "end_time_ns": end, "host": host},
            ),
            f"{start}",
        )
        for start, end in spans
    ]


def test_runs_in_turn_pair_in_the_order_of_their_times() -> None:
    base, new = session(KERNELS, pairs=4)

    found = arrange(base[::-1], new)

    assert found.order == (1.0, -1.0, 1.0, -1.0)
    assert [run.source for run in found.base] == [run.source for run in base]
    assert found.is_paired
    assert not found.is_confounded


def test_one_side_always_first_is_confounded() -> None:
    found = arrange(at((0, 1), (4, 5), (8, 9)), at((2, 3), (6, 7), (10, 11)))

    assert found.order == (1.0, 1.0, 1.0)
    assert found.is_confounded


def test_one_pair_has_no_order_to_alternate() -> None:
    assert not paired_as(at((0, 1)), at((2, 3)), [True]).is_confounded


@pytest.mark.parametrize(
    ("base", "new"),
    [
        (at((0, 1), (2, 3)), at((4, 5), (6, 7))),
        (at((0, 1)), at((2, 3))),
        (at((0, 1), (4, 5)), at((2, 3))),
        (at((0, 1), (4, 5)), at((2, 3), (6, 7), host="there")),
        (at((1, 0), (4, 5)), at((2, 3), (6, 7))),
    ],
)
def test_other_runs_are_apart(base: list[Run], new: list[Run]) -> None:
    found = arrange(base, new)

    assert not found.is_paired
    assert (len(found.base), len(found.new)) == (len(base), len(new))


def test_runs_without_times_are_apart() -> None:
    runs = [Run(profile_of_times({"k": [1.0]}), "x") for _ in range(4)]

    assert not arrange(runs[:2], runs[2:]).is_paired


def test_known_pairs_need_a_run_of_each_side() -> None:
    base, new = session(KERNELS, pairs=2)

    assert paired_as(base, new, [True, False]).order == (1.0, -1.0)
    with pytest.raises(UsageError, match="2 base runs, 1 new runs"):
        paired_as(base, new[:1], [True, False])


def test_a_host_that_is_not_a_text_is_unknown() -> None:
    found = arrange(at((0, 1), (4, 5), host={"a": 1}), at((2, 3), (6, 7), host=""))

    assert found.is_paired

from __future__ import annotations

from typing import Any

import pytest

from proton_bench.model.members import RankGaps, rank_gaps
from proton_bench.model.origin import Origin, is_partial_name


def test_provenance_names_the_process() -> None:
    facts = {
        "host": "h",
        "pid": 7,
        "rank": 3,
        "local_rank": 1,
        "world_size": 8,
        "start_time_ns": 5,
    }

    assert Origin.of(facts, "x.proton") == Origin(
        host="h", process_id=7, rank=3, local_rank=1, world_size=8, start_time_ns=5
    )


def test_the_name_supplies_what_the_file_lacks() -> None:
    found = Origin.of({}, "x.rank3.pid12.part_2.partial.hatchet")

    assert (found.rank, found.process_id, found.part, found.is_partial) == (3, 12, 2, True)
    assert found.identity is None


def test_the_file_counts_before_its_name() -> None:
    assert Origin.of({"rank": 0, "pid": 1}, "x.rank3.pid12.proton").place == ("", 0, 1)


@pytest.mark.parametrize("odd", [None, "3", True, -1, 2**31, 1.0, [3]])
def test_what_is_not_a_number_is_none(odd: Any) -> None:
    found = Origin.of({"rank": odd, "pid": odd, "world_size": odd, "host": 5}, "x.proton")

    assert found == Origin()


def test_ranks_come_in_order_then_their_processes_then_their_parts() -> None:
    origins = [
        Origin(rank=None, process_id=1),
        Origin(rank=10),
        Origin(rank=2, start_time_ns=9, process_id=4),
        Origin(rank=2, start_time_ns=3, process_id=5, part=10),
        Origin(rank=2, start_time_ns=3, process_id=5, part=9),
    ]

    ordered = sorted(origins, key=lambda each: each.order)

    assert ordered == [origins[4], origins[3], origins[2], origins[1], origins[0]]


@pytest.mark.parametrize(
    ("name", "is_partial"),
    [
        ("x.partial.proton", True),
        ("x.partial.chrome_trace.gz", True),
        ("x.proton", False),
        ("partial.proton", False),
        ("x.partial.1234.pftrace", True),
        ("x.partial.1234-2.proton", True),
        ("x.partial.y.proton", False),
    ],
)
def test_names_of_partial_files_are_known(name: str, is_partial: bool) -> None:
    assert is_partial_name(name) is is_partial


def test_gaps_are_found_by_the_size_of_the_job() -> None:
    origins = [Origin(rank=1, world_size=4), Origin(rank=3, world_size=4, is_partial=True)]

    assert rank_gaps(origins) == RankGaps(4, present=(1, 3), missing=(0, 2), partial=(3,))


def test_without_a_size_ranks_up_to_the_last_one_count() -> None:
    assert rank_gaps([Origin(rank=2)]) == RankGaps(3, present=(2,), missing=(0, 1))


def test_files_without_ranks_have_no_gaps() -> None:
    assert rank_gaps([Origin(process_id=4)]) == RankGaps()
    assert RankGaps().to_plain() == {}


def test_a_size_that_no_job_has_is_not_listed() -> None:
    assert len(rank_gaps([Origin(rank=0, world_size=2**31 - 1)]).missing) < 2**21

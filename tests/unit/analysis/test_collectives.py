from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from proton_bench.analysis.collectives import Operation, operations_of
from proton_bench.analysis.compared_ranks import compare_collectives, with_collectives
from proton_bench.analysis.metrics.derive import available_metrics, derive
from proton_bench.analysis.ranks import in_order
from proton_bench.analysis.why.findings import find
from proton_bench.analysis.why.run import WholeRun
from proton_bench.errors import UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.members import Member, merge_members
from proton_bench.model.origin import Origin
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance

MS = 1_000_000
Call = tuple[int, int]  # arrival and end
ALL_REDUCE = "gloo:all_reduce"


def kind(calls: int, *, name: str = ALL_REDUCE, group: str = "0", size: int = 4) -> dict[str, Any]:
    return {
        "name": name, "group": group, "ranks": size, "calls": calls, "ended": calls,
        "bytes": 1_000_000 * calls, "total_ns": 10 * MS * calls,
    }  # fmt: skip


def member(
    rank: int,
    calls: Sequence[Call],
    *,
    host: str = "a",
    works: Mapping[str, int] | None = None,
    name: str = ALL_REDUCE,
    group: str = "0",
) -> Member:
    """Return a file of a rank: its calls, and the own times of its operators."""
    builder = ProfileBuilder()
    spent = {name: sum(end - start for start, end in calls), **(works or {})}
    for operator, time_ns in spent.items():
        metrics = {"time (ns)": time_ns, "count": len(calls)}
        builder.add(0, operator, FrameKind.OP, metrics=metrics)
    columns = zip(*[(0, i, 0, start, end - start) for i, (start, end) in enumerate(calls)],
                  strict=True)  # fmt: skip
    names = ("kind", "number", "bytes", "start_ns", "took_ns")
    facts = {
        "collectives": {
            "every": 1,
            "from_start": True,
            "kinds": [kind(len(calls), name=name, group=group)],
            "calls": dict(zip(names, map(list, columns), strict=True)),
        },
        "recorded_ns": 10 * len(calls) * 10 * MS,
    }
    profile = replace(builder.build(), provenance=Provenance(facts))
    return Member(f"r{rank}", Origin(host=host, rank=rank, world_size=4), profile)


def job(
    arrival: Callable[[int, int], int],
    *,
    ends: Callable[[int, int], int] = lambda _rank, _call: 0,
    calls: int = 20,
    **options: Any,
) -> list[Member]:
    """Return four ranks whose transfers take 2 ms from the last arrival, and more by `ends`."""
    members = []
    for rank in range(4):
        times = []
        for call in range(calls):
            start = 100 * MS * call
            last = start + max(arrival(other, call) for other in range(4))
            times.append((start + arrival(rank, call), last + 2 * MS + ends(rank, call)))
        members.append(member(rank, times, **options))
    return members


def late(rank: int, call: int) -> int:
    return 12 * MS if rank == 2 and call % 10 != 0 else 1000 * ((rank + call) % 4)


def together(rank: int, call: int) -> int:
    return 1000 * ((rank + call) % 4)


def merged(members: Sequence[Member]) -> Profile:
    return with_collectives(merge_members(members), members)


def findings(profile: Profile) -> dict[str, Any]:
    return {each.id: each for each in find(WholeRun.of(profile))}


def test_the_late_rank_and_what_the_others_waited_are_known() -> None:
    (operation,) = compare_collectives(job(late))

    assert (operation.name, operation.size, operation.calls) == (ALL_REDUCE, 4, 20)
    assert (operation.ranks, operation.compared) == ((0, 1, 2, 3), 20)
    assert operation.late[2] >= 18
    assert operation.late_ns[2] == pytest.approx(12 * MS, rel=0.01)
    assert operation.waited_ns[2] < 0.01 * operation.waited_ns[0]
    assert operation.waited_ns[0] == pytest.approx(18 * 12 * MS, rel=0.01)
    assert operation.transfer_ns == pytest.approx(2 * MS)


def test_the_place_is_what_the_late_rank_did_longer_than_the_others() -> None:
    members = job(late)
    for rank in range(4):
        works = {"aten::mm": 50 * MS, "aten::sort": 900 * MS if rank == 2 else 5 * MS}
        members[rank] = job(late, works=works)[rank]

    (operation,) = compare_collectives(members)

    assert operation.places[2] == "aten::sort"


def test_a_merged_file_names_the_late_rank() -> None:
    finding = findings(merged(job(late)))["slow-rank"]

    assert {each.id for each in finding.evidence} == {"ranks.late", "ranks.waited"}
    assert finding.evidence[0].value == pytest.approx(12 * MS, rel=0.01)
    assert finding.text.startswith("rank 2 was late in ")
    assert finding.gain_ns == pytest.approx(4 * 18 * 12 * MS, rel=0.05)


def test_ranks_that_take_turns_at_being_last_are_no_finding() -> None:
    assert "slow-rank" not in findings(merged(job(lambda r, c: 12 * MS * ((r + c) % 4 == 0))))


def test_a_rank_that_is_always_last_by_little_is_no_finding() -> None:
    assert "slow-rank" not in findings(merged(job(lambda r, _: 100_000 * (r == 1))))


def test_a_rank_whose_transfers_take_longer_has_a_slow_link() -> None:
    profile = merged(job(together, ends=lambda rank, _: 4 * MS if rank == 3 else 0))

    found = findings(profile)

    assert "slow-rank" not in found
    assert found["slow-link"].evidence[0].value == pytest.approx(1 / 3, rel=0.01)
    assert found["slow-link"].text.startswith("transfers to rank 3 ")


def test_a_late_rank_that_ends_last_has_no_slow_link() -> None:
    def end(rank: int, call: int) -> int:
        return 3 * MS if rank == 2 and call % 10 != 0 else 0

    assert "slow-link" not in findings(merged(job(late, ends=end)))


def test_clocks_of_hosts_are_aligned_by_the_ends_of_calls() -> None:
    members = job(late)
    hour = 3600 * 1000 * MS
    for rank in (2, 3):
        times = members[rank].profile.provenance["collectives"]["calls"]  # type: ignore[union-attr]
        calls = [
            (start + hour, start + hour + took)
            for start, took in zip(times["start_ns"], times["took_ns"], strict=True)
        ]
        members[rank] = member(rank, calls, host="b")

    (operation,) = compare_collectives(members)

    assert operation.clock_error_ns == 0
    assert operation.late[2] >= 18
    assert operation.late_ns[2] == pytest.approx(12 * MS, rel=0.01)


def test_hosts_are_not_compared_where_a_rank_does_not_number_from_the_first_call() -> None:
    members = [replace(each, origin=replace(each.origin, host=each.source)) for each in job(late)]
    facts = members[3].profile.provenance.to_plain()  # type: ignore[union-attr]
    facts["collectives"]["from_start"] = False
    profile = replace(members[3].profile, provenance=Provenance(facts))  # type: ignore[type-var]

    (whole,) = compare_collectives(members)
    (operation,) = compare_collectives([*members[:3], replace(members[3], profile=profile)])

    assert (whole.compared, operation.compared, operation.calls) == (20, 0, 20)


def test_calls_that_do_not_overlap_are_of_different_numbers_and_not_compared() -> None:
    members = job(late)
    calls = members[1].profile.provenance["collectives"]["calls"]  # type: ignore[union-attr]
    shifted = [
        (start + 100 * MS, start + 100 * MS + took)
        for start, took in zip(calls["start_ns"], calls["took_ns"], strict=True)
    ]
    members[1] = member(1, shifted)

    (operation,) = compare_collectives(members)

    assert (operation.calls, operation.compared) == (20, 0)


@pytest.mark.parametrize(
    "options", [{"group": ""}, {"name": "gloo:broadcast"}], ids=["of some group", "with a root"]
)
def test_calls_that_are_not_known_to_meet_are_counted_and_not_compared(
    options: dict[str, Any],
) -> None:
    (operation,) = compare_collectives(job(late, **options))

    assert (operation.calls, operation.compared, operation.ranks) == (20, 0, ())


def test_a_rank_with_a_coarser_sample_is_compared_by_what_both_have() -> None:
    members = job(late)
    facts = members[0].profile.provenance.to_plain()  # type: ignore[union-attr]
    calls = facts["collectives"]["calls"]
    for name, values in calls.items():
        calls[name] = values[::2]
    facts["collectives"]["every"] = 2
    profile = replace(members[0].profile, provenance=Provenance(facts))  # type: ignore[type-var]
    members[0] = replace(members[0], profile=profile)

    (operation,) = compare_collectives(members)

    assert (operation.compared, operation.calls) == (10, 20)
    assert operation.waited_ns[0] == pytest.approx(2 * 8 * 12 * MS, rel=0.01)


@pytest.mark.parametrize(
    ("name", "whole", "factor"),
    [
        ("gloo:all_reduce", 1, 2 * 3 / 4),
        ("nccl:all_gather", 4, 3 / 4),
        ("nccl:_reduce_scatter_base", 1, 3 / 4),
        ("nccl:all_to_all", 1, 3 / 4),
        ("gloo:broadcast", 1, 1.0),
        ("gloo:send", 1, 1.0),
    ],
)
def test_bandwidths_are_those_of_nccl_tests(name: str, whole: int, factor: float) -> None:
    operation = Operation(name, "0", size=4, calls=1, bytes=1e6, time_ns=1e6)

    assert operation.algorithm_bandwidth == pytest.approx(whole * 1e9)
    assert operation.bus_bandwidth == pytest.approx(whole * 1e9 * factor)


def test_an_operation_of_unknown_size_has_no_bandwidth() -> None:
    assert Operation(ALL_REDUCE, "0", size=4, calls=1, time_ns=1e6).bus_bandwidth is None


def test_a_file_of_one_rank_has_its_own_operations() -> None:
    profile = job(late)[0].profile
    assert profile is not None

    (operation,) = operations_of(profile)

    assert (operation.calls, operation.bytes, operation.time_ns) == (20, 1e6, 10 * MS)


def test_what_is_written_is_read_again_and_damage_is_left_out() -> None:
    profile = merged(job(late))
    (operation,) = operations_of(profile)
    assert operation == compare_collectives(job(late))[0]

    good = asdict(operation)
    damaged = [
        {**good, "late": []},
        {**good, "lost_ns": [-1] * 4},
        {"nothing": 1},
        {**good, "ranks": 1},
        5,
    ]
    facts = {"collectives": {"operations": [*damaged, good], "kinds": 7}}

    assert operations_of(replace(profile, provenance=Provenance(facts))) == (operation,)


def test_files_without_collectives_merge_as_before() -> None:
    members = [
        replace(each, profile=replace(each.profile, provenance=Provenance()))  # type: ignore[type-var]
        for each in job(late)
    ]

    assert "collectives" not in merged(members).provenance


def test_two_files_of_one_rank_are_refused_whatever_their_names() -> None:
    members = [
        replace(
            each, source=f"n.pid{number}.proton", origin=replace(each.origin, process_id=number)
        )
        for number, each in enumerate(job(late)[:2], 70)
    ]
    twins = [members[0], replace(members[1], origin=replace(members[1].origin, rank=0))]

    assert len(in_order(members)[0]) == 2
    with pytest.raises(UsageError, match="both say rank 0"):
        in_order(twins)


def test_a_process_that_a_rank_started_is_not_taken_for_the_rank() -> None:
    members = job(late)
    started = replace(members[1], profile=ProfileBuilder().build())

    (operation,) = compare_collectives([started, *members, started])

    assert operation.compared == 20


def test_rows_of_collectives_have_bandwidths_and_others_have_none() -> None:
    builder = ProfileBuilder()
    top = builder.add(0, "c10d::allgather_", FrameKind.OP, metrics={"time (ns)": 1000})
    builder.add(
        top, "gloo:all_gather", FrameKind.OP, metrics={"time (ns)": 2000, "comm_bytes": 3000}
    )
    facts = {"collectives": {"kinds": [kind(1, name="gloo:all_gather")]}}
    profile = replace(builder.build(), provenance=Provenance(facts))

    algorithm, bus = derive(profile, ["algbw", "busbw"])

    assert algorithm.to_list() == [None, None, pytest.approx(4 * 3000 / 2000)]
    assert bus.to_list() == [None, None, pytest.approx(3 * 3000 / 2000)]
    assert {"algbw", "busbw"} <= set(available_metrics(profile).derivable)

from __future__ import annotations

from typing import Any

import pytest

from proton_bench.analysis.ranks import in_order
from proton_bench.errors import UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.members import ApartBy, Member, merge_members
from proton_bench.model.origin import Origin
from proton_bench.model.profile import Profile


def rank(number: int, time_ns: int = 10, **facts: Any) -> Member:
    """Return a rank that ran a kernel in a scope on its device 0."""
    builder = ProfileBuilder()
    step = builder.add(0, "step", FrameKind.SCOPE)
    builder.add(
        step,
        "k",
        FrameKind.KERNEL,
        metrics={"time (ns)": time_ns, "count": 1},
        device=Device("CUDA", 0),
    )
    known = {
        "host": "h", "pid": 100 + number, "rank": number, "local_rank": number, "world_size": 3,
        "start_time_ns": 5, "estimated_cost_ns": 7, **facts,
    }  # fmt: skip
    profile = builder.build(provenance=known, dropped={"full": 2})
    name = f"x.rank{number}.proton"
    return Member(name, Origin.of(known, name), profile)


def part(number: int, **facts: Any) -> Member:
    member = rank(0, **facts)
    assert member.profile is not None
    name = f"x.part_{number}.proton"
    return Member(name, Origin.of(member.profile.provenance, name), member.profile)


def test_ranks_come_in_their_order() -> None:
    ordered, notes = in_order([rank(2), rank(0), rank(1)])

    assert [member.origin.rank for member in ordered] == [0, 1, 2]
    assert notes == []


def test_a_partial_file_beside_the_whole_one_is_left_out() -> None:
    whole = rank(1)
    early = Member("x.rank1.partial.proton", Origin.of(facts(whole), "x.partial.proton"), None)

    ordered, notes = in_order([early, whole])

    assert ordered == [whole]
    assert notes == [
        "x.rank1.partial.proton is left out, because x.rank1.proton is the complete recording"
    ]


def facts(member: Member) -> dict[str, Any]:
    assert member.profile is not None
    return member.profile.provenance.to_plain()


def test_two_processes_that_claim_one_rank_are_refused() -> None:
    other = rank(2, pid=77, start_time_ns=900)

    with pytest.raises(UsageError, match=r"rank2\.proton and .* rank 2, of processes 102 and 77"):
        in_order([rank(2), rank(1), other])


@pytest.mark.parametrize("name", ["x.rank2.pid77.proton", "job-77.proton"])
def test_a_process_that_a_rank_started_is_one_of_the_job(name: str) -> None:
    child = Member(name, rank(2, pid=77).origin, None)

    ordered, _ = in_order([child, rank(2)])

    assert len(ordered) == 2


def test_the_same_recording_twice_is_refused() -> None:
    with pytest.raises(UsageError, match=r"x\.rank1\.proton .*y\.proton"):
        in_order([rank(1), Member("y.proton", rank(1).origin, None)])


def test_parts_of_one_process_are_not_repetitions() -> None:
    ordered, _ = in_order([part(10), part(9), part(0)])

    assert [member.origin.part for member in ordered] == [0, 9, 10]


def test_files_of_two_jobs_are_refused() -> None:
    with pytest.raises(UsageError, match=r"3 ranks .* 8"):
        in_order([rank(0), rank(1, world_size=8)])


def test_times_and_counts_add_up_and_devices_are_kept_apart() -> None:
    merged = merge_members([rank(0, 10), rank(1, 20)])

    merged.self_check()
    assert merged.inclusive("time (ns)")[0] == 30
    assert merged.devices == (Device("CUDA", 0), Device("CUDA", 1))
    assert [merged.path(row) for row in range(len(merged))] == [
        (), ("step",), ("step", "k"), ("step", "k"),
    ]  # fmt: skip
    assert merged.column("time (ns)").to_list()[2:] == [10, 20]
    assert [each["device"] for each in merged.provenance["merged_devices"]] == ["CUDA:0", "CUDA:1"]
    assert [each["rank"] for each in merged.provenance["merged_devices"]] == [0, 1]


def test_processes_of_one_rank_share_its_devices() -> None:
    child = Member("x.rank0.pid9.proton", Origin(host="h", rank=0, process_id=9), rank(0).profile)

    assert merge_members([rank(0), child]).devices == (Device("CUDA", 0),)


def test_means_over_one_run_are_not_those_of_several() -> None:
    gpm = [{"device": 0, "sampled_ns": 5, "means": {"sm_util": 80.0}}]

    runs = merge_members([rank(0, gpm=gpm), rank(0, gpm=gpm, pid=999)])
    parts = merge_members([part(0, gpm=gpm), part(1, gpm=gpm)])

    assert "gpm" not in runs.provenance
    assert parts.provenance.to_plain()["gpm"] == gpm


def test_ranks_of_one_host_share_its_processor() -> None:
    def cpu(number: int, host: str) -> Member:
        builder = ProfileBuilder()
        builder.add(0, "op", FrameKind.OP, metrics={"count": 1}, device=Device("CPU", 0))
        return Member(f"{number}", Origin(host=host, rank=number), builder.build())

    merged = merge_members([cpu(0, "a"), cpu(1, "a"), cpu(2, "b")])

    assert merged.devices == (Device("CPU", 0), Device("CPU", 1))
    assert merged.column("count").to_list()[1:] == [2, 1]


def test_merged_files_name_their_ranks() -> None:
    partial = rank(2)
    merged = merge_members(
        [rank(0), Member(partial.source, Origin(rank=2, is_partial=True), partial.profile)]
    )

    assert merged.provenance.to_plain()["ranks"] == {
        "world_size": 3, "present": [0, 2], "missing": [1], "partial": [2],
    }  # fmt: skip
    assert "rank" not in merged.provenance
    assert merged.partial


def test_losses_and_costs_of_a_process_count_once_for_all_its_parts() -> None:
    merged = merge_members([part(0), part(1), rank(1)])

    assert merged.dropped == {"full": 4}
    assert merged.provenance["estimated_cost_ns"] == 14
    assert merged.inclusive("time (ns)")[0] == 30


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (ApartBy.NOTHING, ["step"]),
        (ApartBy.RANK, ["rank 0", "rank 1"]),
        (ApartBy.HOST, ["h"]),
        (ApartBy.PROCESS, ["h process 100", "h process 101"]),
    ],
)
def test_what_is_kept_apart_has_a_row_on_top(by: ApartBy, names: list[str]) -> None:
    merged = merge_members([rank(0), rank(1)], by)

    assert [merged.name(row) for row in merged.children(0)] == names
    assert merged.inclusive("time (ns)")[0] == 20


def test_a_file_without_facts_is_called_by_its_name() -> None:
    unknown = Member("old.hatchet", Origin(), rank(0).profile)

    merged = merge_members([unknown], ApartBy.RANK)

    assert [merged.name(row) for row in merged.children(0)] == ["old.hatchet"]


def test_one_file_alone_stays_what_it_is() -> None:
    member = rank(1)

    merged = merge_members([member])

    assert merged.provenance["rank"] == 1
    assert merged.devices == (Device("CUDA", 0),)
    assert isinstance(merged, Profile)

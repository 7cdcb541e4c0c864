from __future__ import annotations

import pytest
from hypothesis import given
from reference.profile_view import close, inclusive_by_path, profiles, view

from proton_bench.errors import MetricError, UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile


def one(name: str, **metrics: object) -> Profile:
    builder = ProfileBuilder()
    builder.add(builder.add(0, "top"), name, metrics=metrics, device=Device("CUDA", 0))
    return builder.build(provenance={"name": name}, dropped={"full": 1})


def test_equal_paths_are_summed_and_others_joined() -> None:
    merged = Profile.merge([one("a", x=1), one("b", x=2), one("a", x=4, y=0.5)])

    merged.self_check()
    assert [merged.path(row) for row in range(len(merged))] == [
        (), ("top",), ("top", "a"), ("top", "b"),
    ]  # fmt: skip
    assert merged.inclusive("x").tolist() == [7, 7, 5, 2]
    assert merged.column("y").to_list() == [None, None, 0.5, None]
    assert merged.devices == (Device("CUDA", 0),)


def test_units_that_were_counted_in_some_files_only_are_left_out() -> None:
    dram = {"counter_time (ns)": 10.0, "dram_busy (ns)": 5.0, "dram_variance (ns^2)": 1.0}
    both = one("a", **dram, **{"tensor_busy (ns)": 9.0, "tensor_variance (ns^2)": 1.0})

    merged = Profile.merge([both, one("a", **dram), one("a", x=1)])

    assert merged.inclusive("dram_busy (ns)").tolist() == [10.0, 10.0, 10.0]
    assert not {"tensor_busy (ns)", "tensor_variance (ns^2)"} & set(merged.columns)
    assert "tensor_busy (ns)" in Profile.merge([both, one("a", x=1)]).columns


def test_facts_come_from_the_first_and_losses_add() -> None:
    merged = Profile.merge([one("a", x=1), one("b", x=2)])

    assert merged.provenance["name"] == "a"
    assert merged.dropped == {"full": 2}


def recorded(**facts: object) -> Profile:
    return ProfileBuilder().build(provenance=facts)


def test_provenance_lists_the_process_of_each_part() -> None:
    controller = recorded(host="h", pid=1, start_time_ns=5, end_time_ns=9, estimated_cost_ns=1)
    worker = recorded(
        host="h", pid=2, worker="gw0", start_time_ns=6, end_time_ns=12, estimated_cost_ns=3,
        torch="2.13",
    )  # fmt: skip

    facts = Profile.merge([controller, worker]).provenance.to_plain()

    assert facts == {
        "host": "h",
        "pid": 1,
        "start_time_ns": 5,
        "end_time_ns": 12,
        "estimated_cost_ns": 4,
        "torch": "2.13",
        "parts": [
            {"host": "h", "pid": 1, "start_time_ns": 5, "end_time_ns": 9},
            {"host": "h", "pid": 2, "worker": "gw0", "start_time_ns": 6, "end_time_ns": 12},
        ],
    }


def test_merging_in_steps_lists_the_same_parts() -> None:
    parts = [recorded(pid=pid) for pid in (1, 2, 3)]

    at_once = Profile.merge(parts)
    in_steps = Profile.merge([parts[0], Profile.merge(parts[1:])])

    assert in_steps.provenance == at_once.provenance


def test_provenance_says_which_part_is_partial() -> None:
    died = ProfileBuilder().build(provenance={"pid": 2}, partial=True)

    merged = Profile.merge([recorded(pid=1), died])

    assert merged.partial
    assert merged.provenance.to_plain()["parts"] == [{"pid": 1}, {"pid": 2, "partial": True}]


def test_a_single_profile_keeps_its_provenance() -> None:
    alone = recorded(pid=1, start_time_ns=5)

    assert Profile.merge([alone]).provenance == alone.provenance


def test_integers_and_floats_merge_to_floats() -> None:
    merged = Profile.merge([one("a", x=1, v=[1]), one("a", x=0.5, v=[0.5])])

    assert merged.column("x").to_list() == [None, None, 1.5]
    assert merged.column("v").to_list() == [None, None, (1.5,)]


def test_texts_are_found_in_the_joined_table() -> None:
    merged = Profile.merge([one("a", note="first"), one("b", note="second")])

    assert merged.column("note").to_list() == [None, None, "first", "second"]


def test_distributions_are_merged_by_path() -> None:
    def sampled(value: float) -> Profile:
        builder = ProfileBuilder()
        builder.set_distribution(
            builder.add(0, "k"), "time (ns)", Distribution.from_samples([value])
        )
        return builder.build()

    table = Profile.merge([sampled(1.0), sampled(2.0)]).distributions["time (ns)"]

    assert [(row, entry.samples.tolist()) for row, entry in table] == [(1, [1.0, 2.0])]


def test_merging_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        Profile.merge([])


def test_metric_of_another_type_is_refused() -> None:
    with pytest.raises(MetricError, match="'x' holds int and str"):
        Profile.merge([one("a", x=1), one("a", x="text")])


def test_metric_of_another_aggregation_is_refused() -> None:
    builder = ProfileBuilder()
    builder.declare("x", Aggregation.EXCLUSIVE)
    builder.add(0, "a", metrics={"x": 1})

    with pytest.raises(MetricError, match="exc and inc"):
        Profile.merge([one("a", x=1), builder.build()])


@given(profile=profiles())
def test_merging_with_itself_doubles_the_sums(profile: Profile) -> None:
    merged = Profile.merge([profile, profile])

    merged.self_check()
    for name in {"time (ns)", "flops"} & profile.columns.keys():
        doubled = {path: 2 * value for path, value in inclusive_by_path(profile, name).items()}
        assert close(inclusive_by_path(merged, name), doubled)


@given(profile=profiles())
def test_merging_alone_only_folds_equal_siblings(profile: Profile) -> None:
    once = Profile.merge([profile])

    assert view(Profile.merge([once])) == view(once)
    assert once.dropped == profile.dropped

"""Traces of ours in Chrome's format, read as call paths."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from typing import Any

import pytest
from fakes.session_chrome import BASE_NS, event, kernel, launch, step, trace, unfinished
from hypothesis import given
from hypothesis import strategies as st
from reference.profile_view import values_by_path
from sweeps import some

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import decode_profile
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

NAME = "x.chrome_trace"


def read(events: list[dict[str, Any]], **facts: Any) -> Profile:
    profile = decode_profile(trace(events, **facts), NAME)
    profile.self_check()
    return profile


def test_times_and_counts_stand_on_the_paths_of_events() -> None:
    profile = read(step())

    assert values_by_path(profile, "time (ns)") == {
        "step/aten::mm": 30_000,
        "step/aten::mm/aten::fill": 10_000,
        "step/k": 30_000,
        "step/ncclDevKernel_AllReduce": 20_000,
    }
    assert set(values_by_path(profile, "count").values()) == {1}
    assert values_by_path(profile, "wall (ns)") == {"step": 90_000}
    assert values_by_path(profile, "flops") == {"step": 12.5}
    assert profile.dropped == {}
    assert not profile.partial


def test_rows_are_what_they_were_recorded_as() -> None:
    profile = read([event("test", ["test_a"], 0, 9), *step()])

    kinds = {profile.path(row)[-1]: profile.kind(row) for row in range(1, len(profile))}
    assert kinds == {
        "test_a": FrameKind.TEST,
        "step": FrameKind.SCOPE,
        "aten::mm": FrameKind.OP,
        "aten::fill": FrameKind.OP,
        "k": FrameKind.KERNEL,
        "ncclDevKernel_AllReduce": FrameKind.KERNEL,
    }


def test_operators_stand_on_the_cpu_and_kernels_on_the_device_of_their_stream() -> None:
    profile = read(step())

    devices = {profile.path(row)[-1]: profile.device(row) for row in range(2, len(profile))}
    assert (devices["aten::mm"].kind, devices["aten::mm"].index) == ("CPU", 0)  # type: ignore[union-attr]
    assert (devices["k"].kind, devices["k"].index) == ("GPU", 0)  # type: ignore[union-attr]


def test_latencies_and_use_of_devices_are_known() -> None:
    profile = read(step())

    assert values_by_path(profile, "launch_latency_sum (ns)") == {"step/k": 40_000}
    (whole,) = (use for use in profile.device_use if use.scope is None)
    assert (whole.busy_ns, whole.waiting_ns, whole.idle_ns) == (50_000, 20_000, 110_000)


def test_the_first_kernel_of_a_graph_has_its_latency() -> None:
    events = [*launch(["g"], 0, 5), *kernel(["g", "a"], 10, 5, 5), *kernel(["g", "b"], 20, 5, 5)]

    assert values_by_path(read(events), "launch_latency_count") == {"g/a": 1}


def test_operators_on_two_threads_do_not_contain_each_other() -> None:
    events = [
        event("cpu_op", ["a"], 0, 10, tid=0),
        event("cpu_op", ["b"], 2, 4, tid=1),
    ]

    assert values_by_path(read(events), "time (ns)") == {"a": 10_000, "b": 4_000}


def test_values_of_kernels_and_copies_stand_on_their_rows() -> None:
    stated = {"flops": "2.500000", "bytes": "7", "time (ns)": "1"}
    work = [event("kernel", ["a", "k"], n, 3, device=0, metrics=stated) for n in (0, 5)]
    copies = [
        event("gpu_memcpy", ["a", "<memcpy>"], n, 1, device=device, metrics={"bytes": "4096"})
        for n, device in ((9, 0), (10, 1))
    ]
    profile = read([*work, *copies])

    assert values_by_path(profile, "flops") == {"a/k": 5.0}
    assert values_by_path(profile, "time (ns)")["a/k"] == 6_002
    moved = profile.column("bytes").to_list()
    assert [profile.name(row) for row in range(len(profile))] == [
        "ROOT", "a", "k", "<memcpy>", "<memcpy>",
    ]  # fmt: skip
    assert moved == [None, None, 14, 4096, 4096]


def test_a_scope_may_be_called_like_the_root() -> None:
    profile = read([event("scope", ["ROOT"], 0, 9), *kernel(["ROOT", "k"], 3, 5, 1)])

    assert values_by_path(profile, "wall (ns)") == {"ROOT": 9_000}
    assert values_by_path(profile, "time (ns)") == {"ROOT/k": 5_000}


def test_deep_paths_take_no_more_memory_than_they_are_long() -> None:
    path = [f"level {number}" for number in range(4000)]
    content = trace([event("scope", path, 0, 9), *kernel([*path, "k"], 3, 5, 1)])

    tracemalloc.start()
    profile = decode_profile(content, NAME)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(profile) == 4002
    assert peak < 30_000_000


def test_an_open_scope_is_a_row_without_a_time() -> None:
    profile = read([event("scope", ["a"], 0, 9, open=True), event("scope", ["a", "b"], 0, 5)])

    assert values_by_path(profile, "wall (ns)") == {"a/b": 5_000}


def test_facts_of_the_process_are_kept() -> None:
    facts = read(step(), rank=2, host="h1", process_id=99).provenance

    assert (facts["rank"], facts["world_size"], facts["local_rank"]) == (2, 4, 2)
    assert (facts["host"], facts["pid"], facts["start_time_ns"]) == ("h1", 99, BASE_NS)


def test_a_file_says_that_it_is_partial() -> None:
    content = trace(step()).replace(b'"is_partial":false', b'"is_partial":true')

    assert decode_profile(content, NAME).partial


@pytest.mark.parametrize("is_packed", [False, True])
def test_what_a_killed_program_left_is_read_as_far_as_it_goes(is_packed: bool) -> None:
    events = step()
    whole = unfinished(events).encode()
    ends = [len(unfinished(events[: n + 1]).encode()) for n in range(len(events))]

    for cut in some(range(ends[0], len(whole)), 200):
        content = whole[:cut]
        if is_packed:
            content = gzip.compress(content, mtime=0)[:-9]
        profile = decode_profile(content, "x.partial.chrome_trace")
        assert profile.partial
        if not is_packed:
            complete = sum(end <= cut for end in ends)
            known = decode_profile(trace(events[:complete]), NAME)
            assert [profile.path(row) for row in range(len(profile))] == [
                known.path(row) for row in range(len(known))
            ]


def test_what_the_session_reported_at_its_end_is_kept() -> None:
    stated = b'"dropped":{"full":3},"provenance":{"command":["x.py"],"rank":2}'
    profile = decode_profile(trace(step()).replace(b'"dropped":{}', stated), NAME)

    assert profile.dropped == {"full": 3}
    assert profile.provenance.to_plain()["command"] == ["x.py"]
    assert profile.provenance["rank"] == 2


def test_a_file_without_its_end_is_partial_though_it_is_whole() -> None:
    assert decode_profile(unfinished(step()).encode() + b"]}\n", NAME).partial


def test_rows_of_graphs_and_scopes_inside_kernels_are_not_rows() -> None:
    graph = event("scope", ["a"], 0, 5, tid=100_007)
    graph["args"] = {"correlation": 5}
    inside = event("kernel_scope", ["step", "k", "load"], 0, 5, device=0)
    profile = read([graph, inside, *step()])

    assert values_by_path(profile, "time (ns)") == values_by_path(read(step()), "time (ns)")
    assert profile.dropped == {}


def test_only_a_file_called_partial_may_be_cut_off() -> None:
    with pytest.raises(ProfileFormatError, match="ends too early"):
        decode_profile(unfinished(step()).encode(), NAME)


def test_what_has_no_place_is_counted() -> None:
    profile = read(
        [
            event("other", ["b"], 0, 5),
            event("scope", ["c"], 0, -5),
            event("other", ["d"], 0, 5, device=0),
        ]
    )

    assert sum(profile.dropped.values()) == 3
    assert len(profile) == 1


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"call_stack": "ROOT"}, "call_stack"),
        ({"call_stack": [1]}, "call_stack"),
        ({"call_stack": ["a"], "device": "0"}, "device"),
        ({"call_stack": ["a"], "device": 0, "correlation": -1}, "correlation"),
        ({"call_stack": ["a"], "device": 0, "metrics": [7]}, "metrics"),
    ],
)
def test_fields_that_cannot_be_are_errors(args: dict[str, Any], problem: str) -> None:
    bad = event("kernel", ["a"], 0, 5)
    bad["args"] = args

    with pytest.raises(ProfileFormatError, match=problem):
        read([bad])


ODD = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.sampled_from(["", "k", [], {}])


@given(
    index=st.integers(0, 8),
    key=st.sampled_from(["cat", "ts", "dur", "pid", "tid", "args", "ph", "name"]),
    argument=st.sampled_from(["call_stack", "device", "correlation", "metrics", "open", "bytes"]),
    value=ODD,
)
def test_odd_values_do_no_harm(index: int, key: str, argument: str, value: Any) -> None:
    events = step()
    events[index % len(events)][key] = value
    arguments = events[(index + 1) % len(events)].get("args")
    if isinstance(arguments, dict):
        arguments[argument] = value

    problem = ""
    try:
        read(events)
    except ProfileFormatError as error:
        problem = str(error)
    assert not problem or problem.startswith(f"{NAME}: ")


@pytest.mark.parametrize("base", ["us", [1], {}, None, 1.5, True, -1])
def test_a_file_without_a_time_of_its_start_is_not_ours(base: object) -> None:
    content = trace(step()).replace(str(BASE_NS).encode(), json.dumps(base).encode())

    assert decode_profile(content, NAME).provenance.get("tool") != "proton_bench"

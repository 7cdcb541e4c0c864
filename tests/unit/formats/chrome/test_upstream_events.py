"""Traces of upstream Proton agree with its trees of the same run."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import decode_profile, read_profile
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

DATA = Path(__file__).parents[3] / "data"
V36, V39 = DATA / "upstream", DATA / "upstream-3.9.0"


def totals(profile: Profile, metric: str) -> dict[tuple[str, ...], Any]:
    """Return the inclusive value of every path that has one."""
    values, covered = profile.inclusive(metric), profile.covered(metric)
    return {profile.path(row): values[row] for row in np.flatnonzero(covered).tolist()}


def decode(*events: dict[str, Any], **head: Any) -> Profile:
    whole = {"displayTimeUnit": "us", **head, "traceEvents": [{"ph": "X", **e} for e in events]}
    return decode_profile(json.dumps(whole).encode(), "x.chrome_trace")


def kernel(*path: str, dur: float = 1.5, **args: Any) -> dict[str, Any]:
    stack = {"call_stack": ["ROOT", *path]}
    return {"cat": "kernel", "name": path[-1], "tid": 200007, "dur": dur, "args": stack | args}


@pytest.mark.parametrize("name", ["run.hatchet", "run.hatchet_msgpack"])
def test_trees_of_390_are_read_with_their_values_and_devices(name: str) -> None:
    profile = read_profile(V39 / name)
    rows = {profile.path(row): row for row in range(len(profile))}
    matmul = rows["outer", "inner", "matmul_kernel"]

    assert len(profile) == 6
    assert profile.column("time (ns)").get(matmul) == 4000
    assert profile.column("count").get(matmul) == 4
    assert profile.column("flops").get(rows["outer", "inner"]) == 24.0
    assert profile.device(matmul) == Device(
        *("CUDA", 0, "90", 132), 1_980_000, 3_201_000, bus_width_bits=6144
    )


@pytest.mark.parametrize("name", ["run.hatchet", "run.hatchet_msgpack"])
@pytest.mark.parametrize("metric", ["time (ns)", "count", "flops", "bytes"])
def test_a_trace_of_390_says_what_the_trees_of_390_say(name: str, metric: str) -> None:
    trace, tree = read_profile(V39 / "run.chrome_trace"), read_profile(V39 / name)

    assert totals(trace, metric) == totals(tree, metric)


def test_a_trace_of_390_holds_kinds_scopes_and_exclusive_metrics() -> None:
    profile = read_profile(V39 / "run.chrome_trace")
    rows = {profile.path(row): row for row in range(len(profile))}
    inner = rows["outer", "inner"]

    assert profile.kind(inner) is FrameKind.SCOPE
    assert profile.kind(rows["outer", "inner", "matmul_kernel"]) is FrameKind.KERNEL
    assert profile.column("wall (ns)").get(inner) == 24_347 + 10_205
    assert profile.column("own").spec.aggregation is Aggregation.EXCLUSIVE
    assert profile.column("own").get(inner) == 3.0
    assert profile.dropped == {}
    assert profile.provenance.to_plain() == {
        "tool": "triton.profiler",
        "format": "chrome_trace",
        "base_time_ns": 1795284635642048507,
    }


def test_a_trace_of_360_is_one_document_per_stream() -> None:
    content = gzip.decompress((V36 / "graph-trace.chrome_trace.gz").read_bytes())
    documents = [json.loads(line)["traceEvents"] for line in content.splitlines()]

    profile = read_profile(V36 / "graph-trace.chrome_trace.gz")

    assert len(documents) > 1
    assert profile.inclusive("count")[0] == sum(map(len, documents))
    assert profile.inclusive("time (ns)")[0] == sum(
        round(event["dur"] * 1000) for events in documents for event in events
    )
    assert FrameKind.GRAPH in profile.kinds


def test_paths_and_counts_of_360_are_those_of_the_tree() -> None:
    trace = read_profile(V36 / "eager-trace.chrome_trace.gz")
    tree = read_profile(V36 / "eager-tree.hatchet")

    assert totals(trace, "count") == totals(tree, "count")


def test_kernels_show_how_busy_a_device_without_a_name_was() -> None:
    profile = read_profile(V36 / "eager-trace.chrome_trace.gz")
    whole, *scopes = profile.device_use

    assert profile.devices == (Device("GPU", 0),)
    assert set(profile.device_rows.tolist()) == {-1}
    # They ran one after the other.
    assert whole.busy_ns == profile.inclusive("time (ns)")[0]
    assert [use.scope for use in scopes] == ["forward", "backward", "optim"]
    assert sum(use.idle_ns for use in scopes) == whole.idle_ns
    assert whole.launches == 0


def test_times_inside_kernels_say_nothing_of_devices() -> None:
    assert read_profile(V36 / "intra-default-trace.chrome_trace.gz").device_use == ()


def test_scopes_inside_kernels_nest_and_their_cycles_add_up() -> None:
    content = gzip.decompress((V36 / "intra-default-trace.chrome_trace.gz").read_bytes())
    stated: Counter[str] = Counter()
    for event in json.loads(content)["traceEvents"]:
        stated[event["name"]] += round(event["dur"] * 1000)

    profile = read_profile(V36 / "intra-default-trace.chrome_trace.gz")

    cycles = totals(profile, "cycles")
    below = ("host", "scaled_add")
    assert {path[-1]: value for path, value in cycles.items() if len(path) > 2} == stated
    assert cycles[below] == stated["load"] + stated["loop"] + stated["store"]
    assert (*below, "load", "load_x") in cycles
    assert (*below, "loop", "fma") in cycles


def test_asynchronous_events_stand_beside_what_they_overlap() -> None:
    def scope(name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
        path = {"call_stack": ["ROOT", "k"]}
        warp = {"pid": "k Core0 CTA0", "tid": "warp 0 (line 0)", "cat": "k", "args": path}
        return {**warp, "name": name, "ts": ts, "dur": dur, **more}

    profile = decode(
        scope("loop", 0, 5),
        scope("load", 2, 1, cat="async"),
        scope("sent", 2, 0, cat="flow", bind_id=1),
    )

    assert totals(profile, "cycles") == {
        (): 6000,
        ("k",): 6000,
        ("k", "loop"): 5000,
        ("k", "load"): 1000,
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"displayTimeUnit":"us","traceEvents":[]}\n',
        b'{"displayTimeUnit":"ns","traceEvents":[]}',
    ],
)
def test_a_trace_of_nothing_is_an_empty_profile(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.chrome_trace"
    path.write_bytes(content)

    assert len(read_profile(path)) == 1


def test_kernels_that_collect_metrics_stand_below_their_scope() -> None:
    event = kernel("scope", "<metric>")
    event["args"]["call_stack"] = ["ROOT", "scope"]

    counts = totals(decode(event), "count")

    assert counts == {(): 1, ("scope",): 1, ("scope", "<metric>"): 1}


def test_metrics_become_numbers_vectors_and_texts() -> None:
    texts = {"a": "2", "b": "2.5", "c": "[1,2]", "d": "text", "e (pty)": "3", "f": "nan"}

    profile = decode(kernel("k", metrics=texts), kernel("k", metrics=texts))

    found = {name: profile.columns[name].get(1) for name in ("a", "b", "c", "d", "e")}
    assert found == {"a": 4, "b": 5.0, "c": (2, 4), "d": "text", "e": 3}
    assert profile.column("e").spec.aggregation is Aggregation.PROPERTY
    assert "f" not in profile.columns


def test_ranges_of_graphs_are_left_to_their_kernels_and_their_metrics_counted() -> None:
    lane = {"cat": "scope", "name": "s", "tid": 100007, "dur": 1.0, "args": {}}
    stated = {**lane, "cat": "metric", "args": {"metrics": {"a": "1"}}}

    profile = decode(kernel("k"), lane, stated)

    assert sum(profile.dropped.values()) == 1


def test_events_without_a_duration_are_counted() -> None:
    lost = kernel("b")
    del lost["dur"]

    profile = decode(kernel("a"), kernel("a", dur=-1.0), lost)

    assert profile.inclusive("count")[0] == 1
    assert sum(profile.dropped.values()) == 2


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"args": {"call_stack": "k"}}, "call_stack is not a list"),
        ({"args": {"call_stack": ["k", 1]}}, "call_stack is not a list"),
        ({"dur": "1"}, r"Expected `int | float"),
        ({"name": 1}, "Expected `str`"),
        ({"args": {"call_stack": ["k"], "metrics": [1]}}, "not a map"),
    ],
)
def test_values_of_wrong_types_are_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileFormatError, match=message):
        decode(kernel("k"), {**kernel("k"), **event})


@pytest.mark.parametrize(("one", "other"), [("1", "[1]"), ("[1]", "1")])
def test_a_metric_that_changes_its_type_is_refused(one: str, other: str) -> None:
    with pytest.raises(ProfileFormatError, match="type"):
        decode(
            kernel("k", metrics={"m": one}),
            kernel("k", metrics={"m": other}),
            kernel("l", metrics={"m": one}),
        )


def test_cycles_are_counted_by_the_clock_of_the_event() -> None:
    def scope(name: str, ts: float, dur: float, mhz: float) -> dict[str, Any]:
        stated = {"call_stack": ["ROOT", "k"], "Frequency (MHz)": mhz}
        warp = {"pid": "k Core0 CTA0", "tid": "warp 0 (line 0)", "cat": "k", "args": stated}
        return {**warp, "name": name, "ts": ts, "dur": dur}

    profile = decode(scope("a", 0, 1.5, 2000.0), scope("b", 2, 1.0, 1500.0), scope("a", 5, 1, 0))

    assert totals(profile, "cycles") == {
        (): 5500,
        ("k",): 5500,
        ("k", "a"): 4000,
        ("k", "b"): 1500,
    }
    instances = profile.columns["instances"]
    assert [instances.get(row) for row in range(len(profile))] == [None, None, 2, 1]


def test_rows_of_cores_repeat_the_values_of_scopes() -> None:
    core = {"pid": "Cores", "tid": "Core 0 (line 0)", "cat": "core", "name": "k CTA0"}
    stated = {"call_stack": ["ROOT", "k"]}
    warp = {"pid": "k Core0 CTA0", "tid": "warp 0 (line 0)", "cat": "k", "args": stated}

    profile = decode({**warp, "name": "a", "ts": 0, "dur": 1}, {**core, "ts": 0, "dur": 9})

    assert totals(profile, "cycles") == {(): 1000, ("k",): 1000, ("k", "a"): 1000}
    assert not profile.dropped

"""Upstream's tests of traces and of periodic flushing, on the double of libcupti."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

PROGRAMS = Path(__file__).with_name("upstream_trace_programs.py")
DAY_NS = 24 * 3600 * 10**9
METADATA = "__proton_launch_metadata"
Record = Callable[..., Path]
Event = dict[str, Any]

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed"
)
BUFFERED = pytest.mark.parametrize(
    ("form", "buffer_bytes"),
    [("hatchet", 256 << 10), ("hatchet_msgpack", 64 << 20)],
    ids=["hatchet-256K", "hatchet_msgpack-64M"],
)


@pytest.fixture
def record(cupti_doubles: Doubles, tmp_path: Path) -> Record:
    """Run a program, and return the folder with its files."""

    def run(name: str, form: str = "", buffer_bytes: int = 64 << 20) -> Path:
        environment = cupti_doubles.environment(TRITON_PROFILE_BUFFER_SIZE=str(buffer_bytes))
        command = [sys.executable, str(PROGRAMS), name, str(tmp_path / "x"), form]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return tmp_path

    return run


def events_of(folder: Path) -> list[Event]:
    document = json.loads((folder / "x.chrome_trace").read_text())
    return [event for event in document["traceEvents"] if event["ph"] != "C"]


def of(events: list[Event], category: str) -> list[Event]:
    return [event for event in events if event.get("cat") == category]


def stacks(events: list[Event]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(event["args"]["call_stack"]) for event in events)


def tree_of(path: Path) -> Event:
    if path.suffix == ".hatchet_msgpack":
        return msgspec.msgpack.decode(path.read_bytes(), strict=False)[0]
    return json.loads(path.read_text())[0]


def child(node: Event, *path: str) -> Event:
    for name in path:
        (node,) = (each for each in node["children"] if each["frame"]["name"] == name)
    return node


def test_a_scope_that_waits_covers_its_kernel(record: Record) -> None:
    folder = record("waiting")

    events = events_of(folder)
    (kernel,), (scope,) = of(events, "kernel"), of(events, "scope")
    assert kernel["args"]["call_stack"] == ["ROOT", "test", "foo"]
    assert scope["ts"] <= kernel["ts"]
    assert kernel["ts"] + kernel["dur"] <= scope["ts"] + scope["dur"]
    base_ns = json.loads((folder / "x.chrome_trace").read_text())["baseTimeNanoseconds"]
    assert abs(time.time_ns() - base_ns) < DAY_NS


def test_metrics_of_scopes_stand_in_a_trace(record: Record) -> None:
    events = events_of(record("scope_ranges"))

    kinds = ("kernel", "metric", "scope", "flow")
    assert [len(of(events, kind)) for kind in kinds] == [4, 3, 4, 8]
    outer = ("ROOT", "scope_3")
    assert stacks(of(events, "kernel")) == Counter(
        [
            (*outer, "scope_2", "scope_1", "foo"),
            (*outer, "scope_2", "scope_4", "foo"),
            (*outer, "scope_2", "scope_5", "foo"),
            (*outer, "scope_6", "scope_7", "foo"),
        ]
    )
    assert {
        event["name"]: (event["args"]["call_stack"], event["args"]["metrics"])
        for event in of(events, "metric")
    } == {
        "scope_1: <m1, 1.000000>": ([*outer, "scope_2", "scope_1"], {"m1": "1.000000"}),
        "scope_2: <m2, 2.000000>": ([*outer, "scope_2"], {"m2": "2.000000"}),
        "scope_3: <m3, 3.000000>": ([*outer], {"m3": "3.000000"}),
    }
    assert stacks(of(events, "scope")) == Counter(
        [
            (*outer, "scope_2", "scope_4"),
            (*outer, "scope_2", "scope_5"),
            (*outer, "scope_6"),
            (*outer, "scope_6", "scope_7"),
        ]
    )


def test_each_launch_has_an_arrow_from_its_thread_to_its_stream(record: Record) -> None:
    events = events_of(record("scope_ranges"))

    flows = of(events, "flow")
    ends = {phase: {e["id"]: e for e in flows if e["ph"] == phase} for phase in "sf"}
    assert ends["s"].keys() == ends["f"].keys()
    assert len(ends["s"]) == 4
    assert {(e["name"], e["bp"]) for e in flows} == {("launch->kernel", "e")}
    assert {e["tid"] for e in ends["s"].values()} == {e["tid"] for e in of(events, "metric")}
    assert {e["tid"] for e in ends["f"].values()} == {e["tid"] for e in of(events, "kernel")}


def test_a_trace_without_a_kernel_has_its_scope_alone(record: Record) -> None:
    events = events_of(record("no_kernel"))

    (event,) = (each for each in events if each["ph"] != "M")
    assert (event["cat"], event["name"]) == ("metric", "metric_only: <foo, 1.000000>")
    assert event["args"]["call_stack"] == ["ROOT", "metric_only"]
    assert event["args"]["metrics"] == {"foo": "1.000000"}
    assert isinstance(event["args"]["scope_id"], int)


def test_the_scopes_of_a_graph_have_a_row(record: Record) -> None:
    events = events_of(record("graph_scopes"))

    rows = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    (row,) = (row for name, row in rows.items() if name.startswith("Graph: Stream "))
    shown = [event for event in events if event["ph"] == "X" and event["tid"] == row]
    assert Counter(e["name"] for e in shown) == Counter(["<captured_at>", "a", "b", "c", METADATA])
    assert {event["cat"] for event in shown} == {"scope"}
    # Each covers those inside of it.
    spans = {e["name"]: (e["ts"], e["ts"] + e["dur"]) for e in shown}
    for outer, inner in (("<captured_at>", "a"), ("a", "b"), ("b", "c"), ("c", METADATA)):
        assert spans[outer][0] <= spans[inner][0] < spans[inner][1] <= spans[outer][1]


def test_the_kernels_of_a_replay_stand_below_its_scope(record: Record) -> None:
    events = events_of(record("graph_scopes"))

    above = ("ROOT", "test0", "<captured_at>", "a")
    kernels = of(events, "kernel")
    assert stacks(kernels) == Counter(
        [
            (*above, "b", "c", METADATA, "<metric>"),
            (*above, "b", "c", "foo"),
            (*above, "b", "foo"),
            (*above, "foo"),
        ]
    )
    (scope,) = (e for e in of(events, "scope") if e["args"].get("call_stack") == ["ROOT", "test0"])
    start, end = sorted(of(events, "flow"), key=lambda event: event["ts"])
    first = min(kernels, key=lambda event: event["ts"])
    assert (start["ph"], start["tid"]) == ("s", scope["tid"])
    assert scope["ts"] <= start["ts"] <= scope["ts"] + scope["dur"]
    assert (end["ph"], end["tid"], end["ts"]) == ("f", first["tid"], first["ts"])


def test_streams_have_rows_in_a_trace(record: Record) -> None:
    kernels = of(events_of(record("streams", "trace")), "kernel")

    assert len({kernel["tid"] for kernel in kernels}) == 2
    assert sorted(kernel["args"]["call_stack"][1] for kernel in kernels) == [
        "stream_scope_0",
        "stream_scope_1",
    ]


def test_streams_have_scopes_in_a_tree(record: Record) -> None:
    tree = tree_of(record("streams", "tree") / "x.hatchet")

    for number in range(2):
        kernel = child(tree, f"stream_scope_{number}", "foo")
        assert kernel["metrics"]["time (ns)"] > 0


@BUFFERED
def test_phases_are_written_while_kernels_run(form: str, buffer_bytes: int, record: Record) -> None:
    folder = record("flushing", form, buffer_bytes)

    assert len(list(folder.iterdir())) == 10
    for phase in range(10):
        scopes = tree_of(folder / f"x.part_{phase}.{form}")["children"]
        names = {scope["frame"]["name"] for scope in scopes}
        assert names == {f"test_{number}" for number in range(500 * phase, 500 * phase + 500)}
        assert len(scopes) == 500
        for scope in scopes:
            assert scope["metrics"]["items"] == 1
            assert child(scope, "foo")["metrics"]["time (ns)"] > 0


@needs_triton
@BUFFERED
def test_each_phase_has_the_metrics_of_its_replays(
    form: str, buffer_bytes: int, record: Record
) -> None:
    folder = record("flushing_graph", form, buffer_bytes)

    assert len(list(folder.iterdir())) == 10
    for phase in range(10):
        tree = tree_of(folder / f"x.part_{phase}.{form}")
        captured = child(tree, "test0", "<captured_at>")
        assert child(captured, "scope_a")["metrics"]["bytes"] == 50 * 16
        of_launch = child(captured, "foo_test")["metrics"]
        assert (of_launch["bytes"], of_launch["flops"]) == (50 * 16, 50 * 4)
        assert of_launch["count"] == 50
        metric = child(captured, METADATA, "foo", "<metric>")
        assert metric["metrics"]["count"] == 50

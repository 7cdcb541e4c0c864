"""If upstream's tree is requested, our timeline has upstream's events."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

PROGRAMS = Path(__file__).with_name("upstream_trace_programs.py")
Event = dict[str, Any]


@pytest.fixture(scope="module")
def trace(cupti_doubles: Doubles, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run a program of test_upstream_traces.py once, and return its file."""
    folder = tmp_path_factory.mktemp("traces")

    @functools.cache
    def run(name: str, *, upstream: bool = True) -> Event:
        asked = {"PROTON_BENCH_UPSTREAM_TREE": "1" if upstream else "0"}
        command = [sys.executable, str(PROGRAMS), name, str(folder / name), "trace"]
        environment = cupti_doubles.environment(**asked)
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        document: Event = json.loads((folder / f"{name}.chrome_trace").read_text())
        return document

    return run


def of(document: Event, category: str) -> list[Event]:
    return [event for event in document["traceEvents"] if event.get("cat") == category]


def span(event: Event) -> tuple[int, int]:
    start_ns = round(event["ts"] * 1000)
    return start_ns, start_ns + round(event["dur"] * 1000)


def test_a_launch_is_one_event_without_arguments_of_ours(trace: Any) -> None:
    document = trace("scope_ranges")

    assert document.keys() == {"baseTimeNanoseconds", "displayTimeUnit", "traceEvents"}
    kinds = Counter(event.get("cat", event["ph"]) for event in document["traceEvents"])
    # Two of the process, two of each row.
    assert kinds == {"M": 6, "scope": 4, "metric": 3, "flow": 8, "kernel": 4}
    assert {tuple(event["args"]) for event in of(document, "kernel")} == {("call_stack", "metrics")}
    assert {tuple(event["args"]) for event in of(document, "scope")} == {("call_stack", "scope_id")}
    assert {tuple(event["args"]) for event in document["traceEvents"] if event["ph"] == "M"} == {
        ("name",),
        ("sort_index",),
    }


def test_events_come_in_upstreams_order(trace: Any) -> None:
    document = trace("waiting")

    order = [event.get("cat", event["ph"]) for event in document["traceEvents"]]
    assert order == [*["M"] * 6, "scope", "flow", "flow", "kernel"]
    assert document["traceEvents"][-1]["args"]["call_stack"] == ["ROOT", "test", "foo"]


def test_an_arrow_begins_where_its_scope_does(trace: Any) -> None:
    document = trace("scope_ranges")

    starts = {event["id"]: event for event in of(document, "flow") if event["ph"] == "s"}
    ends = {event["id"]: event for event in of(document, "flow") if event["ph"] == "f"}
    scopes = {event["ts"]: event for event in (*of(document, "scope"), *of(document, "metric"))}
    kernels = {event["ts"]: event for event in of(document, "kernel")}
    assert len(starts) == len(ends) == 4
    for number, start in starts.items():
        kernel = kernels[ends[number]["ts"]]
        scope = scopes[start["ts"]]
        assert scope["args"]["call_stack"] == kernel["args"]["call_stack"][:-1]
        assert (start["tid"], ends[number]["tid"]) == (scope["tid"], kernel["tid"])


def test_a_timeline_without_work_on_a_device_has_no_rows_named(trace: Any) -> None:
    (event,) = trace("no_kernel")["traceEvents"]

    assert (event["cat"], event["name"]) == ("metric", "metric_only: <foo, 1.000000>")


def test_the_launch_of_a_graph_has_one_arrow_from_its_scope(trace: Any) -> None:
    document = trace("graph_scopes")

    (scope,) = (
        e for e in of(document, "scope") if e["args"].get("call_stack") == ["ROOT", "test0"]
    )
    start, end = sorted(of(document, "flow"), key=lambda event: event["ph"] == "f")
    first = min(of(document, "kernel"), key=lambda event: event["ts"])
    assert (start["tid"], start["ts"]) == (scope["tid"], scope["ts"])
    assert (end["tid"], end["ts"], end["id"]) == (first["tid"], first["ts"], start["id"])


@pytest.mark.parametrize("upstream", [True, False])
def test_the_scopes_of_a_graph_cover_their_kernels_and_nothing_else(
    upstream: bool, trace: Any
) -> None:
    document = trace("graph_scopes", upstream=upstream)

    rows = {
        event["args"]["name"]: event["tid"]
        for event in document["traceEvents"]
        if event["name"] == "thread_name"
    }
    (row,) = (row for name, row in rows.items() if name.startswith("Graph: Stream "))
    shown = {e["name"]: span(e) for e in of(document, "scope") if e["tid"] == row}
    kernels = of(document, "kernel")
    for name, bounds in shown.items():
        inside = [span(e) for e in kernels if name in e["args"]["call_stack"]]
        assert bounds == (min(start for start, _ in inside), max(end for _, end in inside))

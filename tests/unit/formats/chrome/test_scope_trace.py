"""Timelines of scopes inside kernels in Chrome's format."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from proton_bench.formats.chrome.scope_trace import ScopeLaunch, write_scope_trace

PROGRAM = {
    "program": 5,
    "processor": 7,
    "init_ns": 1000,
    "pre_final_ns": 3000,
    "post_final_ns": 3200,
    "first": 0,
    "count": 9,
    "last_cycle": 0,
    "is_lossy": 0,
}
# Start cycle, cycles, warp, warp of the end, scope, whether it is asynchronous.
OUTER = (0, 401, 0, 0, 0, 0)


def launch(*instances: tuple[int, ...], **program: int) -> ScopeLaunch:
    """Return a launch of one program, on a clock of 2 GHz."""
    return ScopeLaunch(
        path=("ROOT", "host", "add"),
        device=0,
        device_name="CUDA:0",
        clock_hz=2_000_000_000,
        scope_names=("outer", "inner"),
        programs=[tuple((PROGRAM | program).values())],
        instances=np.array(instances, dtype=np.uint64),
    )


def events(*launches: ScopeLaunch, upstream_shape: bool = True) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        write_scope_trace(launches, upstream_shape=upstream_shape)
    )["traceEvents"]
    return found


def test_a_scope_is_one_event_in_nanoseconds_of_the_real_clock() -> None:
    written = write_scope_trace([launch(OUTER)], upstream_shape=False).decode()

    assert written.startswith('{"baseTimeNanoseconds":1000,"displayTimeUnit":"ns",')
    assert (
        '{"args":{"Finalization Time (ns)":200,"Frequency (MHz)":2000.0,"Init Time (ns)":1000,'
        '"Post Final Time (ns)":3200,"call_stack":["ROOT","host","add"]},"cat":"add",'
        '"cname":"cq_build_passed","dur":0.2005,"name":"outer","ph":"X","pid":"add Core7 CTA5",'
        '"tid":"warp 0 (line 0)","ts":0.0}'
    ) in written
    assert '"name":"add CTA5","ph":"X","pid":"Cores","tid":"Core 7 (line 0)"' in written


def test_upstreams_form_has_no_events_but_those_of_scopes() -> None:
    assert [event["name"] for event in events(launch(OUTER))] == ["outer"]


def test_scopes_that_overlap_are_in_lanes() -> None:
    scopes = (
        (10, 20, 0, 0, 1, 0),
        (30, 20, 0, 0, 1, 0),
        (0, 100, 0, 0, 0, 0),
        (0, 100, 1, 1, 0, 0),
    )

    assert [event["tid"] for event in events(launch(*scopes))] == [
        "warp 0 (line 0)",
        "warp 0 (line 1)",
        "warp 0 (line 1)",
        "warp 1 (line 0)",
    ]


def test_asynchronous_events_are_ranges_or_links_between_warps() -> None:
    out, into, inside = events(launch((0, 100, 1, 1, 0, 1), (20, 60, 0, 2, 1, 1)))

    assert (inside["cat"], inside["tid"]) == ("async", "warp 1 (line 0)")
    assert [(mark["cat"], mark["bind_id"], mark["tid"], mark["ts"]) for mark in (out, into)] == [
        ("flow", 1, "warp 0 (line 0)", 0.01),
        ("flow", 1, "warp 2 (line 0)", 0.04),
    ]
    assert out["flow_out"]
    assert into["flow_in"]


def test_a_program_that_lost_records_is_placed_by_its_end() -> None:
    (event,) = events(launch((0, 1000, 0, 0, 0, 0), is_lossy=1, last_cycle=1000))

    assert event["ts"] == 1.5


def test_an_unknown_clock_is_taken_for_one_gigahertz() -> None:
    (event,) = events(replace(launch(OUTER), clock_hz=0))

    assert (event["args"]["Frequency (MHz)"], event["dur"]) == (1000.0, 0.401)


def test_names_are_escaped_and_times_before_the_beginning_do_no_harm() -> None:
    odd = launch((1 << 42, (1 << 43) - 1, 0, 0, 0, 0), pre_final_ns=0, post_final_ns=0)
    odd = replace(odd, path=("ROOT", 'k"'), scope_names=('a"\n',), device=99)

    (event,) = events(odd, upstream_shape=False)

    assert (event["name"], event["cat"]) == ('a"\n', 'k"')
    assert event["args"]["Post Final Time (ns)"] == 0


@pytest.mark.parametrize("upstream_shape", [True, False])
def test_without_a_timeline_the_trace_is_empty(*, upstream_shape: bool) -> None:
    written = write_scope_trace([], upstream_shape=upstream_shape)

    assert written == b'{"displayTimeUnit":"ns","traceEvents":[]}\n'

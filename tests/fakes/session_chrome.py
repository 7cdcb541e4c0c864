"""Writes traces in Chrome's format with the keys of proton_bench's encoder."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any

Event = dict[str, Any]

BASE_NS = 1_790_000_000_000_000_000
STREAM = 200_000


def event(
    category: str, path: Sequence[str], ts: float, dur: float, *, tid: int = 0, **args: Any
) -> Event:
    """Return a slice; times in microseconds since the base."""
    return {
        "args": {"call_stack": ["ROOT", *path], **args},
        "cat": category,
        "dur": dur,
        "name": path[-1],
        "ph": "X",
        "pid": 0,
        "tid": tid,
        "ts": ts,
    }


def launch(path: Sequence[str], ts: float, correlation: int) -> list[Event]:
    """Return the call and the start of its arrow."""
    call = event("cuda_runtime", path, ts, 1.0, correlation=correlation)
    return [call | {"name": "cudaLaunchKernel"}, mark("s", correlation, 0, ts)]


def kernel(path: Sequence[str], ts: float, dur: float, correlation: int) -> list[Event]:
    """Return a kernel on stream 7 of device 0 and the end of its arrow."""
    work = event(
        "kernel", path, ts, dur, tid=STREAM + 7,
        correlation=correlation, device=0, metrics={}, stream=7,
    )  # fmt: skip
    return [work, mark("f", correlation, STREAM + 7, ts)]


def embedded(profile: bytes, *, piece: int = 1 << 20, process: int = 0) -> list[Event]:
    """Return the events in which a session leaves its encoded profile."""
    return [
        {
            "args": {
                "profile": base64.b64encode(profile[at : at + piece]).decode(),
                "rest": max(0, len(profile) - at - piece),
            },
            "name": "proton_bench.profile",
            "ph": "M",
            "pid": process,
            "tid": 0,
        }
        for at in range(0, len(profile), piece)
    ]


def mark(phase: str, number: int, tid: int, ts: float) -> Event:
    return {
        "bp": "e", "cat": "flow", "id": number, "name": "launch->kernel", "ph": phase, "pid": 0,
        "tid": tid, "ts": ts,
    }  # fmt: skip


def head(
    rank: int | None = None,
    *,
    world_size: int = 4,
    host: str = "node",
    process_id: int = 7,
    base_ns: int = BASE_NS,
) -> str:
    facts: dict[str, Any] = {
        "baseTimeNanoseconds": base_ns,
        "displayTimeUnit": "us",
        "host_name": host,
    }
    if rank is not None:
        facts["distributedInfo"] = {"rank": rank, "local_rank": rank, "world_size": world_size}
    facts |= {"process_id": process_id, "process_name": "python"}
    names = [
        {"args": {"name": "Trace"}, "name": "process_name", "ph": "M", "pid": 0, "tid": 0},
        {"args": {"name": "CPU Thread 0"}, "name": "thread_name", "ph": "M", "pid": 0, "tid": 0},
    ]
    return json.dumps(facts)[:-1] + ',"traceEvents":' + json.dumps(names)[:-1]


def trace(events: Iterable[Event], rank: int | None = None, **facts: Any) -> bytes:
    """Return a whole file."""
    end = '],"proton_bench":{"clock_drift_ns":0,"dropped":{},"is_partial":false}}\n'
    return (unfinished(events, rank, **facts) + end).encode()


def unfinished(events: Iterable[Event], rank: int | None = None, **facts: Any) -> str:
    """Return a file without its end."""
    return head(rank, **facts) + "".join("," + json.dumps(each) for each in events)


def step(slow_us: float = 0.0) -> list[Event]:
    """Return a scope with an operator in an operator, a launch, and two kernels."""
    return [
        event("metric", ["step"], 0, 90, scope_id=1, metrics={"flops": "12.500000"}),
        event("cpu_op", ["step", "aten::mm"], 10, 40),
        event("cpu_op", ["step", "aten::mm", "aten::fill"], 20, 10),
        *launch(["step", "k"], 60, 1),
        *kernel(["step", "k"], 100, 30 + slow_us, 1),
        *kernel(["step", "ncclDevKernel_AllReduce"], 200, 20, 2),
    ]

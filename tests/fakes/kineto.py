"""Writes traces as torch.profiler does, with events of a GPU: layout of Kineto's output_json.cpp.

Keys before and after the events, their order and indentation are those of a trace that torch 2.13
wrote on a machine without a GPU (``tests/data/kineto``); events of the GPU have
the fields that torch writes on machines with one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Event = dict[str, Any]

GPU = {
    "id": 0,
    "name": "NVIDIA H200",
    "totalGlobalMem": 150110011392,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "numSms": 132,
}


def host(category: str, name: str, ts: float, dur: float, **more: Any) -> Event:
    """Return a range of the host thread 7 of process 7; times in microseconds."""
    event = {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": dur}
    return {**event, "args": {"External id": 1, "Ev Idx": 0}, **more}


def call(correlation: int, ts: float, name: str = "cudaLaunchKernel", **more: Any) -> Event:
    """Return the call that launched something."""
    event = host("cuda_runtime", name, ts, 4.0)
    event["args"] = {"External id": 1, "cbid": 211, "correlation": correlation}
    return {**event, **more}


def kernel(correlation: int, ts: float, dur: float, name: str = "gemm", **more: Any) -> Event:
    """Return a kernel on stream 7 of device 0."""
    arguments = {
        "External id": 1,
        "queued": 0,
        "device": 0,
        "context": 1,
        "stream": 7,
        "correlation": correlation,
        "registers per thread": 32,
        "shared memory": 1024,
        "blocks per SM": 0.5,
        "warps per SM": 2.0,
        "grid": [64, 1, 1],
        "block": [128, 1, 1],
        "est. achieved occupancy %": 3,
    }
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur}
    return {**event, "args": {**arguments, **more}}


def head(gpus: Iterable[Event] = (GPU,)) -> str:
    """Return the part before the events."""
    properties = ",\n".join(json.dumps(gpu, indent=4) for gpu in gpus)
    return (
        f'{{\n    "schemaVersion": 1,\n    "deviceProperties": [\n{properties}\n    ],\n'
        '    "cuda_runtime_version": 12080,\n    "cuda_driver_version": 13000,\n'
        '    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},\n'
        '    "trace_id": "0123",\n    "host_name": "node1",\n    "displayTimeUnit": "ms",\n'
        '    "baseTimeNanoseconds": 1759341000000000000,\n    "traceEvents": [\n'
    )


def trace(events: Iterable[Event], gpus: Iterable[Event] = (GPU,)) -> bytes:
    """Return a whole trace."""
    body = ",\n".join(json.dumps(event, indent=2) for event in events)
    return f'{head(gpus)}{body}\n  ],\n  "traceName": "t.json"}}'.encode()


def write_large(path: Path, size: int) -> int:
    """Write a trace of about ``size`` bytes, step by step; return the number of its kernels."""
    kernels, now = 0, 4_426_918_678_000.25
    with path.open("w") as stream:
        stream.write(head())
        stream.write(json.dumps(host("user_annotation", "first", now, 1.0), indent=2))
        while stream.tell() < size:
            events = []
            for step in range(50):
                at = now + 100.0 * step
                events += [
                    host("python_function", f"model.py({step}): forward", at, 60.0),
                    host("cpu_op", "aten::linear", at + 5.0, 40.0),
                    host("cpu_op", "aten::addmm", at + 8.0, 30.0),
                    call(kernels + 1, at + 10.0),
                    kernel(kernels + 1, at + 30.0, 12.5, f"gemm_{step}"),
                ]
                kernels += 1
            now += 5000.0
            stream.write("".join(",\n" + json.dumps(event, indent=2) for event in events))
        stream.write('\n  ],\n  "traceName": "t.json"}')
    return kernels

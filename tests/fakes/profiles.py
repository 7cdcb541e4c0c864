"""Small profiles for tests: as parsed ``.hatchet`` JSON and as `Profile`."""

from __future__ import annotations

import copy
from typing import Any

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

RTX_4090 = {
    "arch": "89",
    "bus_width": 384,
    "clock_rate": 2625000,
    "memory_clock_rate": 10501000,
    "num_sms": 128,
}
H100 = {
    "arch": "90",
    "bus_width": 6144,
    "clock_rate": 1980000,
    "memory_clock_rate": 2619000,
    "num_sms": 132,
}
MI200 = {
    "arch": "gfx90a",
    "bus_width": 4096,
    "clock_rate": 1700000,
    "memory_clock_rate": 1600000,
    "num_sms": 104,
}
MI300 = {
    "arch": "gfx942",
    "bus_width": 8192,
    "clock_rate": 5200000,
    "memory_clock_rate": 2525000,
    "num_sms": 304,
}
HINTS = {"bytes": 0, "count": 0, "flops8": 0, "time (ns)": 0}


def node(name: str, metrics: dict[str, Any] | None = None, *children: Any) -> dict[str, Any]:
    """Return one node as ``.hatchet`` files hold it."""
    return {
        "children": list(children),
        "frame": {"name": name, "type": "function"},
        "metrics": dict(metrics or {}),
    }


def work(kind: str, index: str, count: int, flops8: float) -> dict[str, Any]:
    """Return the metrics of a kernel of 204800 ns that moves a thousandth of its operations."""
    return {
        "bytes": flops8 / 1000,
        "count": count,
        "device_id": index,
        "device_type": kind,
        "flops8": flops8,
        "time (ns)": 204800,
    }


def two_devices(kind: str, *devices: dict[str, Any]) -> list[dict[str, Any]]:
    """Return ROOT > foo0 (10 launches on device 1), foo1 (1 launch on device 0)."""
    tree = node(
        "ROOT",
        HINTS,
        node("foo0", work(kind, "1", 10, 1e11)),
        node("foo1", work(kind, "0", 1, 1e10)),
    )
    return [tree, {kind: {str(i): copy.copy(device) for i, device in enumerate(devices)}}]


def cuda_literal() -> list[dict[str, Any]]:
    """Return two kernels on an sm89 and an sm90 device."""
    return two_devices("CUDA", RTX_4090, H100)


def hip_literal() -> list[dict[str, Any]]:
    """Return two kernels on a gfx90a and a gfx942 device."""
    return two_devices("HIP", MI200, MI300)


def metadata_literal() -> list[dict[str, Any]]:
    """Return a scope with a kernel and the kernels of its launch metadata, in both spellings."""
    cost = {"count": 1, "device_id": "0", "device_type": "CUDA", "time (ns)": 4000}
    scope = node(
        "scope",
        {},
        node("__proton_launch_metadata", {}, node("cuda_kernel", cost)),
        node("__proton_launch_metadata:triton_kernel", {}, node("other_kernel", cost)),
        node("triton_kernel", {**cost, "time (ns)": 1600}),
        node("empty", {}, node("emptier")),
    )
    return [node("ROOT", {"count": 0, "time (ns)": 0}, scope), {"CUDA": {"0": H100}}]


def training_profile() -> Profile:
    """Return test > forward, backward with kernels, Python frames, exclusive walls, properties."""
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    builder.declare("label", Aggregation.PROPERTY)
    gpu = Device("CUDA", 0, "90", 132, 1_980_000, 2_619_000, 6144)
    test = builder.add(0, "test_step", FrameKind.TEST, metrics={"wall (ns)": 9_000_000})
    for name, time in (("forward", 1_000_000), ("backward", 3_000_000)):
        scope = builder.add(
            test, name, FrameKind.SCOPE, metrics={"wall (ns)": 2 * time, "label": f"l-{name}"}
        )
        frame = builder.add(scope, f"/home/me/model.py:{len(builder)}@{name}", FrameKind.PYTHON)
        for part in (1, 3):
            builder.add(
                frame,
                f"kernel_{part}",
                FrameKind.KERNEL,
                metrics={"time (ns)": time * part // 4, "count": part, "flops16": time * 1e3},
                device=gpu,
            )
    return builder.build()


def deep_profile(depth: int) -> Profile:
    """Return a chain of scopes, 1 ns each."""
    builder = ProfileBuilder()
    row = 0
    for level in range(depth):
        row = builder.add(row, f"level {level}", FrameKind.SCOPE, metrics={"time (ns)": 1})
    return builder.build()

"""Names of upstream's API that need a GPU."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton
import proton_bench.language as pl
from proton_bench.hooks import HookManager, InstrumentationHook, LaunchHook

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]


def describe(grid: Any, metadata: Any, arguments: Any) -> dict[str, Any]:
    return {"name": f"{metadata.name}_{grid[0]}", "flops": torch.full((1,), 8.0, device="cuda")}


@triton.jit(launch_metadata=describe)  # type: ignore[untyped-decorator]
def add(source, target):  # type: ignore[no-untyped-def]
    tl.store(target, tl.load(source) + 1)


@triton.jit  # type: ignore[untyped-decorator]
def scoped(source, target):  # type: ignore[no-untyped-def]
    pl.enter_scope("kernel")
    values = tl.load(source + tl.arange(0, 64))
    pl.exit_scope("kernel")
    tl.store(target + tl.arange(0, 64), values)


@pytest.fixture
def memory() -> Iterator[tuple[Any, Any]]:
    yield torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    InstrumentationHook.enable_host_buffer = False
    HookManager.unregister()
    proton.finalize()


def metrics_by_path(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}

    def walk(node: Any, above: tuple[str, ...]) -> None:
        here = (*above, node["frame"]["name"])
        found["/".join(here[1:])] = node["metrics"]
        for child in node["children"]:
            walk(child, here)

    walk(json.loads(path.with_suffix(".hatchet").read_text())[0], ())
    return found


def test_one_element_is_a_number_at_a_launch_and_in_a_graph(
    tmp_path: Path, memory: tuple[Any, Any]
) -> None:
    add[(1,)](*memory)
    proton.start(str(tmp_path / "x"), hook="triton")
    proton.metric.set_metric_kernels()
    one, square = torch.full((1,), 2.0, device="cuda"), torch.full((1, 1), 7, device="cuda")
    with proton.scope("eager", {"one": one, "square": square}):
        add[(1,)](*memory)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), proton.scope("layer", {"one": one, "square": square}):
        add[(1,)](*memory)
    with proton.scope("replays"):
        for _ in range(3):
            graph.replay()
    proton.finalize()

    found = metrics_by_path(tmp_path / "x")
    (layer,) = [
        value
        for path, value in found.items()
        if path.startswith("replays") and path.endswith("layer")
    ]
    flops = {
        path.partition("/")[0]: value["flops"] for path, value in found.items() if "flops" in value
    }
    assert (found["eager"]["one"], found["eager"]["square"]) == (2.0, 7)
    assert (layer["one"], layer["square"]) == (6.0, 21)
    assert (flops["eager"], flops["replays"]) == (8.0, 24.0)


def test_each_launch_of_each_thread_has_an_id(tmp_path: Path, memory: tuple[Any, Any]) -> None:
    proton.start(str(tmp_path / "x"), hook="triton")
    launch = proton.hooks.launch
    seen: set[Any] = set()

    def run() -> None:
        for _ in range(100):
            add[(1,)](*memory)
            seen.add((launch.id.get(), launch.op_name.get(), launch.enabled.get()))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len({identifier for identifier, _, _ in seen}) == 200
    assert {(name, is_open) for _, name, is_open in seen} == {("add_1", False)}


@pytest.mark.usefixtures("memory")
def test_a_hook_that_is_registered_instruments() -> None:
    hook = InstrumentationHook("")
    HookManager.register(hook, 2)
    HookManager.register(LaunchHook(), 2)

    active = list(HookManager.active_hooks)
    with pytest.raises(RuntimeError, match="Only one instance of the instrumentation hook"):
        HookManager.register(InstrumentationHook(""), 3)
    HookManager.unregister()

    assert active == [LaunchHook(), hook]
    assert (HookManager.active_hooks, InstrumentationHook.active_count) == ([], 0)


def test_the_records_of_a_launch_come_to_the_host(tmp_path: Path, memory: tuple[Any, Any]) -> None:
    pl.enable_semantic("triton")
    proton.start(str(tmp_path / "x"), backend="instrumentation")
    InstrumentationHook.enable_host_buffer = True
    scoped[(2,)](*memory, num_warps=4)
    raw = InstrumentationHook.host_buffer.numpy().tobytes()
    add[(1,)](*memory)
    of_plain = InstrumentationHook.host_buffer
    proton.finalize()

    numbers = struct.unpack_from("10I", raw)
    header, payload = numbers[2], numbers[4]
    assert (numbers[0], numbers[5:8], numbers[9]) == (1, (1, 2, 4), 4)
    assert len(raw) == header + payload
    assert struct.unpack_from("I", raw, header)[0] == 0xDEADBEEF
    bare = of_plain.numpy().tobytes()  # of a kernel without scopes: a header alone
    assert (struct.unpack_from("10I", bare)[2], struct.unpack_from("10I", bare)[4]) == (
        len(bare),
        0,
    )
    (scope,) = [
        m for path, m in metrics_by_path(tmp_path / "x").items() if path.endswith("/kernel")
    ]
    assert scope["cycles"] > 0

"""Metrics that are tensors while a CUDA graph is captured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    torch.ones(1024, device="cuda").add_(1)
    torch.cuda.synchronize()
    yield
    proton.finalize()


def metrics_below(path: Path, *names: str) -> dict[str, Any]:
    """Return the metrics of the node that the names lead to, from the root."""
    nodes = json.loads(path.with_suffix(".hatchet").read_text())[0]["children"]
    node: dict[str, Any] = {}
    for name in names:
        node = next((each for each in nodes if each["frame"]["name"] == name), {"metrics": {}})
        nodes = node.get("children", [])
    return dict(node["metrics"])


def captured(body: Any) -> Any:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    return graph


def test_each_replay_adds_what_its_tensors_hold(tmp_path: Path) -> None:
    x = torch.ones(1024, device="cuda")
    size = torch.tensor(16, device="cuda")
    work = torch.tensor(4.0, device="cuda")
    vector = torch.arange(4, device="cuda")
    session = proton.start(str(tmp_path / "x"), backend="cupti")

    def body() -> None:
        with proton.scope("layer", {"bytes": size, "flops": work, "vec": vector}):
            x.mul_(2)

    graph = captured(body)
    for number in range(10):
        with proton.scope("even" if number % 2 == 0 else "odd"):
            graph.replay()
        work.fill_(4.0 if number % 2 else 1.0)
    torch.cuda.synchronize()
    proton.finalize(session)

    even = metrics_below(tmp_path / "x", "even", "<captured_at>", "layer")
    odd = metrics_below(tmp_path / "x", "odd", "<captured_at>", "layer")
    assert (even["bytes"], odd["bytes"]) == (80, 80)
    assert (even["flops"], odd["flops"]) == (20.0, 5.0)
    assert even["vec"] == [0, 5, 10, 15]


def test_many_replays_lose_no_value(tmp_path: Path) -> None:
    x = torch.ones(16, device="cuda")
    count = torch.zeros((), dtype=torch.int64, device="cuda")
    session = proton.start(str(tmp_path / "x"), backend="cupti")

    def body() -> None:
        count.add_(1)
        with proton.scope("layer", {"sum": count}):
            x.mul_(1)

    graph = captured(body)
    with proton.scope("replay"):
        for _ in range(20_000):
            graph.replay()
    torch.cuda.synchronize()
    proton.finalize(session)

    layer = metrics_below(tmp_path / "x", "replay", "<captured_at>", "layer")
    assert layer["sum"] == sum(range(1, 20_001))


def test_replays_of_a_pause_add_nothing_later(tmp_path: Path) -> None:
    x = torch.ones(16, device="cuda")
    value = torch.tensor(1.0, device="cuda")
    session = proton.start(str(tmp_path / "x"), backend="cupti")

    def body() -> None:
        with proton.scope("layer", {"flops": value}):
            x.mul_(1)

    graph = captured(body)
    for number in (1.0, 10.0, 100.0):
        value.fill_(number)
        if number == 10.0:
            proton.deactivate(session)
        with proton.scope("replay"):
            graph.replay()
        if number == 10.0:
            proton.activate(session)
    torch.cuda.synchronize()
    proton.finalize(session)

    layer = metrics_below(tmp_path / "x", "replay", "<captured_at>", "layer")
    assert layer["flops"] == 101.0


def _describe(grid: Any, metadata: Any, arguments: Any) -> dict[str, Any]:
    return {"name": "scale", "flops": arguments["work"], "bytes": 64}


@triton.jit(launch_metadata=_describe)  # type: ignore[untyped-decorator]
def scale(target, work, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]  # noqa: N803
    offsets = tl.arange(0, BLOCK)
    tl.store(target + offsets, tl.load(target + offsets) * 2)


def test_launch_metadata_that_is_a_tensor_counts_at_each_replay(tmp_path: Path) -> None:
    x = torch.ones(16, device="cuda")
    work = torch.tensor(8.0, device="cuda")
    scale[(1,)](x, work, BLOCK=16)
    torch.cuda.synchronize()
    session = proton.start(str(tmp_path / "x"), backend="cupti", hook="triton")
    graph = captured(lambda: scale[(1,)](x, work, BLOCK=16))
    with proton.scope("replay"):
        graph.replay()
        graph.replay()
    torch.cuda.synchronize()
    proton.finalize(session)

    kernel = metrics_below(tmp_path / "x", "replay", "<captured_at>", "scale")
    assert (kernel["flops"], kernel["bytes"], kernel["count"]) == (16.0, 128, 2)

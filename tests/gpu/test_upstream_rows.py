"""Upstream's tests of profiles, on an NVIDIA GPU.

See docs/reference/compatibility.md.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

import proton_bench as proton

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    """Start with a warm device, and end every session."""
    torch.ones(64, device="cuda").add_(1)
    torch.cuda.synchronize()
    yield
    proton.finalize()


@triton.jit  # type: ignore[untyped-decorator]
def copy_kernel(source, target, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]  # noqa: N803
    offsets = tl.arange(0, BLOCK)
    tl.store(target + offsets, tl.load(source + offsets))


def read(path: Path) -> dict[str, Any]:
    """Return the root of a written profile."""
    root: dict[str, Any] = json.loads(path.with_suffix(".hatchet").read_text())[0]
    return root


def named(node: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the node that the names lead to."""
    for name in names:
        node = next(each for each in node["children"] if each["frame"]["name"] == name)
    return node


def kernels(node: dict[str, Any]) -> int:
    """Return how many kernels ran below a node."""
    count: int = node["metrics"].get("count", 0)
    return count + sum(kernels(child) for child in node["children"])


def names(node: dict[str, Any]) -> list[str]:
    return [child["frame"]["name"] for child in node["children"]]


@pytest.mark.parametrize("context", ["shadow", "python"])
def test_a_kernel_of_torch_stands_below_its_scope(
    context: Literal["shadow", "python"], tmp_path: Path
) -> None:
    proton.start(str(tmp_path / "x"), context=context)
    with proton.scope("test"):
        torch.ones((2, 2), device="cuda")
    proton.finalize()

    root = read(tmp_path / "x")
    if context == "shadow":
        (kernel,) = named(root, "test")["children"]
        assert kernel["metrics"]["time (ns)"] > 0
        return
    above, queue = "", [(root, "")]
    while queue:
        node, parent = queue.pop()
        if "elementwise" in node["frame"]["name"]:
            above = parent
        queue += [(child, node["frame"]["name"]) for child in node["children"]]
    assert re.fullmatch(r".+:\d+@.+", above)


def test_scopes_of_triton_kernels_nest(tmp_path: Path) -> None:
    x, y = torch.ones(64, device="cuda"), torch.empty(64, device="cuda")
    proton.start(str(tmp_path / "x"))
    with proton.scope("test0"), proton.scope("test1"):
        copy_kernel[(1,)](x, y, BLOCK=64)
    with proton.scope("test2"):
        copy_kernel[(1,)](x, y, BLOCK=64)
    proton.finalize()

    root = read(tmp_path / "x")
    assert names(root) == ["test0", "test2"]
    assert names(named(root, "test0", "test1")) == ["copy_kernel"]
    assert names(named(root, "test2")) == ["copy_kernel"]


def test_scopes_have_metrics_beside_their_kernels(tmp_path: Path) -> None:
    proton.start(str(tmp_path / "x"))
    with proton.scope("test", {"foo": 1.0, "vec": [1, 2]}):
        torch.ones((2, 2), device="cuda")
    proton.finalize()

    test = named(read(tmp_path / "x"), "test")
    assert (test["metrics"]["foo"], test["metrics"]["vec"]) == (1.0, [1, 2])
    assert kernels(test) == 1


def test_kernels_of_backward_stand_in_the_scope_of_its_caller(tmp_path: Path) -> None:
    proton.start(str(tmp_path / "x"))
    with proton.scope("ones"):
        a = torch.ones((100, 100), device="cuda", requires_grad=True)
    with proton.scope("plus"):
        b = a * a * a
    with proton.scope("loss"):
        loss = b.sum()
    for number in range(3):
        with proton.scope(f"backward {number}"):
            loss.backward(retain_graph=True)
    torch.cuda.synchronize()
    proton.finalize()

    root = read(tmp_path / "x")
    backward = [f"backward {number}" for number in range(3)]
    assert names(root) == ["ones", "plus", "loss", *backward]
    assert kernels(named(root, backward[1])) == kernels(named(root, backward[2])) > 0


def test_timed_scopes_measure_the_host(tmp_path: Path) -> None:
    proton.start(str(tmp_path / "x"))
    with proton.cpu_timed_scope("outer"), proton.cpu_timed_scope("inner"):
        torch.ones((100, 100), device="cuda")
    proton.finalize()

    outer = named(read(tmp_path / "x"), "outer")
    inner = named(outer, "inner")
    assert outer["metrics"]["cpu_time (ns)"] >= inner["metrics"]["cpu_time (ns)"] > 0


def test_data_of_a_live_session(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"))
    with proton.scope("test"):
        for _ in range(3):
            torch.ones((2, 2), device="cuda")
    proton.deactivate(session, flushing=True)

    found = proton.data.get(session)
    packed = proton.data.get_msgpack(session)

    assert kernels(named(found[0], "test")) == 3
    assert packed is not None
    assert msgspec.msgpack.decode(packed) == found


def test_phases_complete_and_clear(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"))
    for number in range(2):
        with proton.scope(f"phase {number}"):
            torch.ones((2, 2), device="cuda")
        assert not proton.data.is_phase_complete(session, number)
        proton.data.advance_phase(session)
    with proton.scope("phase 2"):
        torch.ones((2, 2), device="cuda")
    proton.deactivate(session, flushing=True)

    assert proton.data.is_phase_complete(session, 0)
    assert proton.data.is_phase_complete(session, 1)
    assert names(proton.data.get(session, 1)[0]) == ["phase 1"]
    proton.data.clear(session, phase=1, clear_up_to_phase=True)
    with pytest.raises(IndexError, match="live phases: 2"):
        proton.data.get(session, 0)
    assert kernels(named(proton.data.get(session, 2)[0], "phase 2")) == 1
    proton.data.clear(session, phase=2, clear_up_to_phase=True)
    assert proton.data.get(session, 2)[0]["children"] == []


def test_after_clear_only_what_is_new_is_there(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"))
    with proton.scope("old"):
        torch.ones((2, 2), device="cuda")
    proton.deactivate(session, flushing=True)
    proton.data.clear(session)
    proton.activate(session)
    with proton.scope("new"):
        torch.ones((2, 2), device="cuda")
    proton.finalize(session)

    root = read(tmp_path / "x")
    assert names(root) == ["new"]
    assert kernels(root) == 1


def test_a_paused_session_records_nothing(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"))
    proton.deactivate(session)
    torch.randn((10, 10), device="cuda")
    proton.activate(session)
    torch.zeros((10, 10), device="cuda")
    proton.deactivate(session)
    proton.finalize()

    root = read(tmp_path / "x")
    assert "device_id" not in root["metrics"]
    assert kernels(root) == len(root["children"]) == 1


def test_two_sessions_count_for_themselves(tmp_path: Path) -> None:
    first = proton.start(str(tmp_path / "first"))
    torch.randn((10, 10), device="cuda")
    second = proton.start(str(tmp_path / "second"))
    torch.randn((10, 10), device="cuda")
    torch.randn((10, 10), device="cuda")
    proton.finalize(second)
    torch.randn((10, 10), device="cuda")
    proton.finalize(first)

    assert kernels(read(tmp_path / "second")) == 2
    assert kernels(read(tmp_path / "first")) == 4


def test_streams_stand_in_their_scopes(tmp_path: Path) -> None:
    proton.start(str(tmp_path / "x"))
    for number in range(2):
        with torch.cuda.stream(torch.cuda.Stream()), proton.scope(f"stream {number}"):
            torch.ones((100, 100), device="cuda")
    torch.cuda.synchronize()
    proton.finalize()

    root = read(tmp_path / "x")
    assert [kernels(named(root, f"stream {number}")) for number in range(2)] == [1, 1]


def test_threads_have_scopes_of_their_own(tmp_path: Path) -> None:
    proton.start(str(tmp_path / "x"))

    def work(number: int) -> None:
        with proton.scope(f"thread {number}"):
            torch.ones((10, 10), device="cuda")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proton.finalize()

    root = read(tmp_path / "x")
    assert sorted(names(root)) == sorted(f"thread {number}" for number in range(100))
    assert kernels(root) == 100


def test_tensors_are_metrics_of_scopes(tmp_path: Path) -> None:
    x = torch.full((4, 4), 2.0, device="cuda")
    proton.start(str(tmp_path / "x"))
    with proton.scope("test", {"mean": x.mean(), "sum": x.sum()}):
        torch.ones((2, 2), device="cuda")
    proton.finalize()

    test = named(read(tmp_path / "x"), "test")
    assert (test["metrics"]["mean"], test["metrics"]["sum"]) == (2.0, 32.0)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_two_devices_keep_their_tensors_apart(tmp_path: Path) -> None:
    proton.start(str(tmp_path / "x"))
    graphs = []
    for device in range(2):
        with torch.cuda.device(device):
            x = torch.full((), float(device + 1), device="cuda")
            graph = torch.cuda.CUDAGraph()
            # torch's own default is a stream of the device that captured first in the process.
            capture = torch.cuda.graph(graph, stream=torch.cuda.Stream())
            with capture, proton.scope(f"device {device}", {"flops": x}):
                x + 1
            graphs.append((x, graph))
    for device, (_, graph) in enumerate(graphs):
        with torch.cuda.device(device), proton.scope("replay"):
            graph.replay()
            torch.cuda.synchronize()
    proton.finalize()

    captured = named(read(tmp_path / "x"), "replay", "<captured_at>")
    for device in range(2):
        found = named(captured, f"device {device}")
        assert found["metrics"]["flops"] == float(device + 1)
        assert {child["metrics"]["device_id"] for child in found["children"]} == {str(device)}

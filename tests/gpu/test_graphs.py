"""CUDA graphs and NVTX on an NVIDIA GPU: upstream's tests and further ones."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
ROUNDS = 10


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    yield
    proton.finalize()


def read(path: Path) -> dict[str, Any]:
    """Return the counts of a written profile by path."""
    import json

    tree = json.loads(path.with_suffix(".hatchet").read_text())[0]
    found: dict[str, Any] = {}
    stack = [(child, child["frame"]["name"]) for child in tree["children"]]
    while stack:
        node, at = stack.pop()
        metrics = found.setdefault(at, {})
        for name, value in node["metrics"].items():
            is_sum = name in {"count", "time (ns)"}
            metrics[name] = metrics.get(name, 0) + value if is_sum else value
        stack += [(child, f"{at} > {child['frame']['name']}") for child in node["children"]]
    return found


def total(tree: dict[str, Any], above: str) -> int:
    """Return the kernels below a path."""
    return sum(
        metrics.get("count", 0) for path, metrics in tree.items() if path.startswith(f"{above} > ")
    )


def captured(rounds: int = ROUNDS, metrics: dict[str, float] | None = None) -> Any:
    """Capture a graph of ``rounds`` scopes of two kernels each."""
    x = torch.ones(1024, device="cuda")
    (x + 1).mul_(2)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(rounds):
            with proton.scope(f"iteration {number}", metrics):
                (x + 1).mul_(2)
    return graph


def replays(graph: Any, name: str, times: int = 1) -> None:
    with proton.scope(name):
        for _ in range(times):
            graph.replay()
    torch.cuda.synchronize()


def test_every_replay_holds_the_scopes_of_its_capture(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "graph"), backend="cupti")
    graph = captured()
    replays(graph, "first")
    replays(graph, "second", 3)
    graph = captured()  # once more
    replays(graph, "third")

    proton.finalize(session)

    tree = read(tmp_path / "graph")
    for name, times in (("first", 1), ("second", 3), ("third", 1)):
        for number in range(ROUNDS):
            assert total(tree, f"{name} > <captured_at> > iteration {number}") == 2 * times


def test_two_streams_are_captured_into_one_graph(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "graph"), backend="cupti")
    x = torch.ones(1024, device="cuda")
    (x + 1).mul_(2)
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        with proton.scope("main"):
            y = x + 1
        side.wait_stream(main)
        with torch.cuda.stream(side), proton.scope("side"):
            y.mul_(2)
        main.wait_stream(side)
    replays(graph, "replay", 5)

    proton.finalize(session)

    tree = read(tmp_path / "graph")
    assert total(tree, "replay > <captured_at> > main") == 5
    assert total(tree, "replay > <captured_at> > side") == 5


def test_metrics_of_a_capture_count_at_each_replay(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "graph"), backend="cupti")
    graph = captured(metrics={"flops": 4.0})
    replays(graph, "replay", 7)

    proton.finalize(session)

    tree = read(tmp_path / "graph")
    assert tree["replay > <captured_at> > iteration 0"]["flops"] == 28.0
    assert "flops" not in tree.get("iteration 0", {})


def test_what_was_captured_during_a_pause_has_no_scopes(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "graph"), backend="cupti")
    x = torch.ones(1024, device="cuda")
    (x + 1).mul_(2)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        with proton.scope("seen"):
            y = x + 1
        proton.deactivate(session)
        with proton.scope("unseen"):
            y.mul_(2)
        proton.activate(session)
    replays(graph, "replay")

    proton.finalize(session)

    tree = read(tmp_path / "graph")
    assert total(tree, "replay > <captured_at> > seen") == 1
    assert total(tree, "replay > <captured_at>") == 2
    assert not any("unseen" in path for path in tree)


def test_a_replay_during_a_pause_is_in_no_tree(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "graph"), backend="cupti")
    graph = captured(metrics={"flops": 4.0})
    proton.deactivate(session)
    replays(graph, "unseen")
    proton.activate(session)
    replays(graph, "replay")

    proton.finalize(session)

    tree = read(tmp_path / "graph")
    assert tree["replay > <captured_at> > iteration 0"]["flops"] == 4.0
    assert not any("unseen" in path for path in tree)


def test_earlier_graphs_are_reported_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    graph = captured()
    session = proton.start(str(tmp_path / "graph"), backend="cupti")
    replays(graph, "first")
    replays(graph, "second")

    proton.finalize(session)

    assert capfd.readouterr().err.count("captured before profiling began") == 1
    tree = read(tmp_path / "graph")
    assert total(tree, "first > <captured_at>") == 2 * ROUNDS
    assert total(tree, "second > <captured_at>") == 2 * ROUNDS


def test_one_entry_per_launch(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "graph"), backend="cupti", mode="graph=launch")
    graph = captured()
    replays(graph, "replay", 5)

    proton.finalize(session)

    tree = read(tmp_path / "graph")
    assert tree["replay > <graph>"]["count"] == 5
    assert tree["replay > <graph>"]["time (ns)"] > 0
    assert not any(path.startswith("replay > <captured_at>") for path in tree)


NVTX = """
    import sys
    import proton_bench as proton
    session = proton.start(sys.argv[1], backend="cupti")
    import torch
    x = torch.ones(16, device="cuda")
    torch.cuda.nvtx.range_push("outer")
    x + 1
    with proton.scope("scope"), torch.cuda.nvtx.range("inner"):
        x + 1
    torch.cuda.nvtx.range_pop()
    x + 1
    torch.cuda.synchronize()
    proton.finalize(session)
"""


@pytest.mark.parametrize("switch", [None, "1", "0"])
def test_nvtx_ranges(switch: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if switch is not None:
        monkeypatch.setenv("TRITON_ENABLE_NVTX", switch)
    output = tmp_path / "nvtx"

    subprocess.run([sys.executable, "-c", textwrap.dedent(NVTX), str(output)], check=True)

    tree = read(output)
    inner = "scope" if switch == "0" else "outer > scope > inner"
    assert total(tree, inner) == 1
    assert any(path.startswith("outer") for path in tree) is (switch != "0")


@pytest.mark.parametrize("size", [256, 1 << 20])
def test_a_copy_of_a_graph_is_recorded_where_it_was_captured(size: int, tmp_path: Path) -> None:
    source, target = torch.ones(2, size, device="cuda")
    torch.cuda.synchronize()
    proton.start(tmp_path / "copies")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), proton.scope("copied"):
        target.copy_(source)
    with proton.scope("replay"):
        for _ in range(3):
            graph.replay()
    torch.cuda.synchronize()
    proton.finalize()

    tree = read(tmp_path / "copies")
    assert tree["replay > <captured_at> > copied > <memcpy D2D>"]["count"] == 3

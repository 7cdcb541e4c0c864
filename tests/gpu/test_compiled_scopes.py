"""Kernels of programs that torch.compile compiles, below the scopes inside of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
ROUNDS = 5


class Model(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, 64)
        self.second = torch.nn.Linear(64, 64)

    def forward(self, x: Any) -> Any:
        with proton.scope("outer", {"rows": x.shape[0]}):
            with proton.scope("first"):
                x = self.first(x)
            with proton.scope("second"):
                x = self.second(x)
        return x.softmax(-1)


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    torch._dynamo.reset()
    yield
    proton.finalize()


@pytest.fixture
def model() -> Any:
    torch.manual_seed(0)
    return Model().cuda()


def kernels(path: Path) -> dict[str, int]:
    """Return how many kernels were counted by the names of the frames above them."""
    found: dict[str, int] = {}

    def visit(node: dict[str, Any], above: tuple[str, ...]) -> None:
        if node["metrics"].get("count") and not node["children"]:
            at = "/".join(above)
            found[at] = found.get(at, 0) + node["metrics"]["count"]
        for child in node["children"]:
            visit(child, (*above, node["frame"]["name"]))

    for child in json.loads(path.with_suffix(".hatchet").read_text())[0]["children"]:
        visit(child, ())
    return found


def record(path: Path, step: Callable[[], object]) -> dict[str, int]:
    session = proton.start(str(path), backend="cupti")
    for _ in range(ROUNDS):
        with proton.scope("around"):
            step()
    torch.cuda.synchronize()
    proton.finalize(session)
    return kernels(path)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_kernels_are_below_the_scopes_of_their_operators(
    tmp_path: Path, model: Any, backend: str
) -> None:
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    x = torch.ones(8, 64, device="cuda")
    with torch.no_grad():
        found = record(tmp_path / "run", lambda: compiled(x))
        assert torch.allclose(compiled(x), model(x), atol=1e-4)
    assert found["around/outer/first"] >= ROUNDS
    assert found["around/outer/second"] >= ROUNDS
    assert found["around"] >= ROUNDS  # softmax


def test_a_graph_compiled_before_the_session_has_the_scopes_around_it(
    tmp_path: Path, model: Any
) -> None:
    compiled = torch.compile(model, fullgraph=True)
    x = torch.ones(8, 64, device="cuda")
    with torch.no_grad():
        compiled(x)
        with torch.compiler.set_stance("fail_on_recompile"):
            found = record(tmp_path / "run", lambda: compiled(x))
    assert set(found) == {"around"}


def test_a_graph_compiled_while_recording_runs_after_it(tmp_path: Path, model: Any) -> None:
    compiled = torch.compile(model, fullgraph=True)
    x = torch.ones(8, 64, device="cuda")
    with torch.no_grad():
        record(tmp_path / "first", lambda: compiled(x))
        with torch.compiler.set_stance("fail_on_recompile"):
            assert torch.allclose(compiled(x), model(x), atol=1e-4)
            found = record(tmp_path / "second", lambda: compiled(x))
    assert found["around/outer/first"] >= ROUNDS


def test_training_records_forward_below_its_scopes(tmp_path: Path, model: Any) -> None:
    compiled = torch.compile(model, fullgraph=True)
    x = torch.ones(8, 64, device="cuda", requires_grad=True)
    found = record(tmp_path / "run", lambda: compiled(x).sum().backward())
    assert found["around/outer/first"] >= ROUNDS
    assert found["around/outer/second"] >= ROUNDS


def test_cuda_graphs_of_a_compiled_model_replay_below_their_scopes(
    tmp_path: Path, model: Any
) -> None:
    compiled = torch.compile(model, fullgraph=True, mode="reduce-overhead")
    x = torch.ones(8, 64, device="cuda")

    def step() -> None:
        torch.compiler.cudagraph_mark_step_begin()
        compiled(x)

    with torch.no_grad():
        found = record(tmp_path / "run", step)
    first = sum(count for path, count in found.items() if path.endswith("outer/first"))
    assert first >= ROUNDS

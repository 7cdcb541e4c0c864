"""The API while torch captures a CUDA graph, in every mode and from two threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton
from proton_bench.recording.session.recording import find_session

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    torch.ones(1024, device="cuda").add_(1).mul_(2)
    torch.cuda.synchronize()
    yield
    proton.finalize()


class Case:
    """What entries use."""

    def __init__(self, path: Path, data: str) -> None:
        self.path, self.data = path, data
        self.value = torch.full((), 4.0, device="cuda")
        self.session: Any = None

    def start(self, suffix: str = "") -> Any:
        return proton.start(f"{self.path}{suffix}", data=self.data, backend="cupti")


def scopes(case: Case) -> None:
    with proton.scope("numbers", {"flops": 2.0}), proton.scope("tensor", {"work": case.value}):
        pass
    with proton.cpu_timed_scope("timed"), proton.metadata_state():
        pass


def pause(case: Case) -> None:
    for flushing in (False, True):
        proton.deactivate(case.session, flushing=flushing)
        proton.activate(case.session)


def start(case: Case) -> None:
    """Start a session that did not see the capture begin."""
    case.session = case.start()


def second(case: Case) -> None:
    proton.finalize(case.start("_second"))


def finalize(case: Case) -> None:
    proton.finalize(case.session)
    case.session = None


def data(case: Case) -> None:
    if case.data == "tree":
        proton.data.get(case.session)
        proton.data.get_msgpack(case.session)
    proton.data.is_phase_complete(case.session, 0)
    known: Any = find_session(case.session)
    known.profile()


def phases(case: Case) -> None:
    proton.data.clear(case.session, proton.data.advance_phase(case.session) - 1)  # type: ignore


ENTRIES: list[Callable[[Case], None]] = [scopes, pause, start, second, finalize, data, phases]


def kernels_below(file: Path, *names: str) -> int:
    """Return the kernels below a path of a written profile."""
    nodes, count = json.loads(file.read_text())[0]["children"], 0
    for name in names:
        nodes = [c for n in nodes if n["frame"]["name"] == name for c in n["children"]]
    while nodes:
        count += sum(node["metrics"].get("count", 0) for node in nodes)
        nodes = [child for node in nodes for child in node["children"]]
    return count


@pytest.mark.parametrize("kind", ["tree", "trace"])
@pytest.mark.parametrize("thread", ["capturing", "other"])
@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_the_capture_lives_and_the_graph_replays(
    tmp_path: Path, entry: Callable[[Case], None], mode: str, thread: str, kind: str
) -> None:
    case = Case(tmp_path / "x", kind)
    if entry is not start:
        case.session = case.start()
    x, graph, errors = torch.ones(1024, device="cuda"), torch.cuda.CUDAGraph(), []

    def elsewhere() -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                entry(case)
        except Exception as error:  # noqa: BLE001 - raised below
            errors.append(error)

    with torch.cuda.graph(graph, capture_error_mode=mode):
        with proton.scope("first"):
            y = x + 1
        if thread == "other":
            other = threading.Thread(target=elsewhere)
            other.start()
            other.join()
        else:
            entry(case)
        with proton.scope("second"):
            y.mul_(2)
    assert not errors
    y.zero_()
    with proton.scope("replay"):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, (x + 1) * 2)
    recorded = case.session is not None
    proton.finalize()

    if kind == "tree" and recorded:
        file = tmp_path / ("x.part_1.hatchet" if entry is phases else "x.hatchet")
        at = ("replay", "<captured_at>")
        assert kernels_below(file, *at, "second") == 1
        assert kernels_below(file, *at, "first") == (0 if entry is start else 1)

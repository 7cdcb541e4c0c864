"""Launch metadata that is a tensor on a GPU: copied in stream order, never waited for."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, fakes, no_session_left, read_tree

import proton_bench as proton
from proton_bench.recording.kernels.hooks import HookManager
from proton_bench.recording.native import native
from proton_bench.recording.session.recording import known_session
from proton_bench_plugins.triton import late_values

__all__ = ["fakes", "no_session_left"]


class Stream:
    """Work in order; it is done by a wait for it, or when the test says so."""

    def __init__(self) -> None:
        self.work: list[Callable[[], None]] = []
        self.waits = 0

    def run(self, count: int | None = None) -> None:
        """Do the first pieces of work."""
        done, self.work[:count] = self.work[:count], []
        for each in done:
            each()

    def record_event(self) -> Event:
        return Event(self)


class Event:
    """The end of a stream's work at the time of its recording."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._is_done = False
        stream.work.append(self._finish)

    def _finish(self) -> None:
        self._is_done = True

    def query(self) -> bool:
        return self._is_done

    def synchronize(self) -> None:
        self._stream.waits += 1
        while not self._is_done:
            self._stream.run(1)


class DeviceTensor:
    """A number that a device holds."""

    is_cuda, shape, dtype = True, (), "float"

    def __init__(self, value: object, device: int = 0) -> None:
        self.value, self.device = value, device

    def detach(self) -> DeviceTensor:
        return self

    def is_floating_point(self) -> bool:
        return isinstance(self.value, float)

    def to(self, dtype: str) -> DeviceTensor:
        """Convert it, as torch does by a kernel."""
        converted = DeviceTensor(self.value, self.device)
        converted.dtype = dtype
        native.emit_kernel(native.emit_launch(), f"to {dtype}", 90, 95, "CUDA", 0, 0)
        return converted


class HostTensor:
    """Pinned memory that a copy is under way to."""

    def __init__(self, streams: dict[int, Stream]) -> None:
        self._streams = streams
        self._value: object = None

    def copy_(self, source: DeviceTensor, *, non_blocking: bool) -> HostTensor:
        assert non_blocking
        self._streams[source.device].work.append(lambda: setattr(self, "_value", source.value))
        return self

    def tolist(self) -> object:
        return self._value


class Gpu:
    """A torch with two devices."""

    def __init__(self) -> None:
        self.streams = {0: Stream(), 1: Stream()}
        self.is_capturing = False
        torch: Any = ModuleType("torch")
        torch.empty = lambda shape, *, dtype, pin_memory: HostTensor(self.streams)
        torch.cuda = ModuleType("torch.cuda")
        torch.float64, torch.int64 = "float64", "int64"
        torch.cuda.stream = contextlib.nullcontext
        torch.cuda.current_stream = lambda device: self.streams[device]
        torch.cuda.is_current_stream_capturing = lambda: self.is_capturing
        self.torch = torch

    @property
    def waits(self) -> int:
        return sum(stream.waits for stream in self.streams.values())


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """Let ``import torch`` give the stand-in."""
    gpu = Gpu()
    monkeypatch.setitem(sys.modules, "torch", gpu.torch)
    return gpu


@pytest.fixture
def session(tmp_path: Path, fakes: FakeBackends, gpu: Gpu) -> int:
    """A session with the hook."""
    started = proton.start(tmp_path / "x", hook="triton")
    assert started is not None
    return started


class Metadata:
    """Launch metadata in the form of Triton's ``LazyDict``."""

    def __init__(self, name: str, values: dict[str, object]) -> None:
        self.data: dict[str, object] = {"name": name, "function": 1, "stream": 0}
        self.extras = [values]

    def get(self) -> dict[str, object]:
        for values in self.extras:
            self.data = {**self.data, **values}
        self.extras.clear()
        return self.data


def launch(name: str, **values: object) -> None:
    """Launch a kernel the way Triton and a device would."""
    metadata = Metadata(name, values)
    HookManager.enter(metadata)
    correlation = native.emit_launch()
    native.emit_kernel(correlation, name, 100, 110, "CUDA", 0, 0)
    HookManager.exit(metadata)


def tree(session: int) -> dict[str, Any]:
    root: dict[str, Any] = proton.data.get(session)[0]
    return root


def test_a_launch_does_not_wait_and_a_flush_brings_the_value(session: int, gpu: Gpu) -> None:
    with proton.scope("layer"):
        launch("mm", total=DeviceTensor(2.5), n=1)
        launch("mm", total=DeviceTensor(4.0), n=1)
    waits = gpu.waits
    before = dict(child(tree(session), "layer", "mm")["metrics"])
    proton.deactivate(session, flushing=True)

    assert waits == 0
    assert "total" not in before
    assert before["n"] == 2
    metrics = child(tree(session), "layer", "mm")["metrics"]
    assert (metrics["total"], metrics["n"], metrics["count"]) == (6.5, 2, 2)


def test_the_value_is_that_of_the_launch(session: int, gpu: Gpu) -> None:
    tensor = DeviceTensor(1.0)
    launch("mm", total=tensor)
    gpu.streams[0].run()
    tensor.value = 100.0
    proton.deactivate(session, flushing=True)

    assert child(tree(session), "mm")["metrics"]["total"] == 1.0


def test_finalize_waits_for_values_under_way(tmp_path: Path, session: int) -> None:
    launch("mm", bytes=DeviceTensor(64.0))
    proton.finalize(session)

    assert child(read_tree(tmp_path / "x.hatchet"), "mm")["metrics"]["bytes"] == 64


def test_a_phase_is_complete_once_its_values_came(session: int) -> None:
    launch("mm", total=DeviceTensor(3.0))
    proton.data.advance_phase(session)
    before = proton.data.is_phase_complete(session, 0)
    proton.deactivate(session, flushing=True)

    assert not before
    assert proton.data.is_phase_complete(session, 0)
    assert child(proton.data.get(session, 0)[0], "mm")["metrics"]["total"] == 3.0


def test_values_count_as_metrics_and_not_as_launches(session: int) -> None:
    launch("mm", total=DeviceTensor(3.0))
    proton.deactivate(session, flushing=True)

    counts = known_session(session).core.counts()
    assert (counts["launches"], counts["records"], counts["metrics"]) == (1, 1, 1)


def test_values_that_came_are_taken_in_without_waiting(session: int, gpu: Gpu) -> None:
    for _ in range(late_values._BATCH):
        launch("mm", total=DeviceTensor(1.0))
    gpu.streams[0].run()
    for _ in range(late_values._BATCH):
        launch("mm", total=DeviceTensor(1.0))

    assert child(tree(session), "mm")["metrics"]["total"] == late_values._BATCH
    assert gpu.waits == 0


def test_memory_of_values_is_bounded(
    session: int, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_values, "_BATCH", 2)
    monkeypatch.setattr(late_values, "_MOST_BATCHES", 3)

    for _ in range(20):
        launch("mm", total=DeviceTensor(1.0))

    assert child(tree(session), "mm")["metrics"]["total"] >= 2 * (10 - 3)
    assert gpu.waits == 10 - 3


def test_tensors_of_two_devices_follow_their_own_streams(session: int, gpu: Gpu) -> None:
    launch("mm", a=DeviceTensor(1.0, 0), b=DeviceTensor(2.0, 1))
    proton.deactivate(session, flushing=True)

    metrics = child(tree(session), "mm")["metrics"]
    assert (metrics["a"], metrics["b"]) == (1.0, 2.0)
    assert [stream.waits for stream in gpu.streams.values()] == [1, 1]


def test_values_of_a_stream_that_is_captured_come_later(session: int, gpu: Gpu) -> None:
    launch("mm", total=DeviceTensor(1.0))
    gpu.is_capturing = True
    proton.deactivate(session, flushing=True)
    assert gpu.waits == 0
    gpu.is_capturing = False
    proton.activate(session)
    proton.deactivate(session, flushing=True)

    assert gpu.waits == 1
    assert child(tree(session), "mm")["metrics"]["total"] == 1.0


def test_tensor_inside_of_a_captured_graph_is_said_and_left_out(
    session: int, gpu: Gpu, capfd: pytest.CaptureFixture[str]
) -> None:
    gpu.is_capturing = True
    launch("mm", total=DeviceTensor(1.0), n=1)
    gpu.is_capturing = False
    proton.deactivate(session, flushing=True)

    assert "kernel 'mm': metric 'total' is a tensor in a graph that no session records" in (
        capfd.readouterr().err
    )
    metrics = child(tree(session), "mm")["metrics"]
    assert metrics["n"] == 1
    assert "total" not in metrics


def test_value_of_another_type_is_widened_when_it_comes(
    session: int, capfd: pytest.CaptureFixture[str]
) -> None:
    launch("mm", total=1)
    launch("mm", total=DeviceTensor(1.5))
    proton.deactivate(session, flushing=True)

    assert "kernel 'mm'" not in capfd.readouterr().err
    assert child(tree(session), "mm")["metrics"]["total"] == 2.5


def test_tensor_on_the_host_is_read_at_once(session: int) -> None:
    class HostArray:
        def tolist(self) -> list[int]:
            return [1, 2, 3]

    launch("mm", shape=HostArray())

    assert child(tree(session), "mm")["metrics"]["shape"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [("flops", 8, "float64"), ("bytes", 64.0, "int64"), ("x", 1.0, "float64"), ("n", 1, "int64")],
)
def test_upstreams_tree_shows_the_kernel_that_converts_a_tensor(
    name: str,
    value: float,
    kind: str,
    tmp_path: Path,
    fakes: FakeBackends,
    gpu: Gpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROTON_BENCH_UPSTREAM_TREE", "1")
    session = proton.start(tmp_path / "x", hook="triton")
    assert session is not None
    launch("mm", **{name: DeviceTensor(value)})
    proton.deactivate(session, flushing=True)

    root = tree(session)
    assert len(root["children"]) == 2
    converting = child(root, "__proton_launch_metadata", "mm", f"to {kind}")
    assert converting["metrics"]["count"] == 1
    assert child(root, "mm")["metrics"][name] == value

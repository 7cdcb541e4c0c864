"""Programs with CUDA graphs on the doubles, for ours alone: cupti_graph_programs.py NAME OUT.

Run by test_cupti_graphs.py in a process of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))

from doubles import Cupti

import proton_bench as proton

cupti = Cupti()


def captured(body: Callable[[], None]) -> int:
    """Return an executable graph of what the body launches on stream 7."""
    cupti.capture_begin(7)
    body()
    graph = cupti.capture_end(7)
    executable = cupti.graph_instantiate(graph)
    cupti.graph_destroy(graph)
    assert isinstance(executable, int)
    return executable


def replay(executable: int, name: str, times: int = 1) -> None:
    """Launch a graph in a scope."""
    with proton.scope(name):
        for _ in range(times):
            cupti.graph_launch(executable, 7)


def metrics(path: str) -> None:
    """Numbers of a scope under capture, in every way in which they are added."""
    proton.start(path, backend="cupti")

    def body() -> None:
        with proton.scope("given", {"flops": 2, "bytes": 3}):
            cupti.launch("kernel", 7)
        with proton.scope("vector", {"vec": [1, 2]}):
            cupti.launch("kernel", 7)
        proton.enter_scope("entered", metrics={"flops": 1})
        cupti.launch("kernel", 7)
        proton.exit_scope("entered", metrics={"bytes": 1})

    executable = captured(body)
    replay(executable, "replay", 5)
    with proton.scope("plain", {"flops": 7}):
        cupti.launch("kernel", 7)


def hooked(path: str) -> None:
    """Metadata of a launch under capture."""
    from triton import knobs
    from triton.compiler import LazyDict

    proton.start(path, backend="cupti", hook="triton")

    def body() -> None:
        metadata = LazyDict({"name": "mm_kernel", "function": 1, "stream": 7})
        metadata.add(lambda: {"name": "mm_8", "flops32": 8}, ())
        with proton.scope("layer"):
            knobs.runtime.launch_enter_hook(metadata)
            cupti.launch("mm_kernel", 7)
            knobs.runtime.launch_exit_hook(metadata)

    replay(captured(body), "replay", 3)


def two_sessions(path: str) -> None:
    """Each session sees the captures that were made while it was active."""

    def body(name: str, flops: int) -> Callable[[], None]:
        def run() -> None:
            with proton.scope(name, {"flops": flops}):
                cupti.launch(f"{name} kernel", 7)

        return run

    first = proton.start(path, backend="cupti")
    of_first = captured(body("first", 2))
    proton.deactivate(first)
    second = proton.start(f"{path}_second", backend="cupti")
    of_second = captured(body("second", 3))
    proton.activate(first)
    replay(of_first, "replay first")
    replay(of_second, "replay second")
    proton.finalize(second)


def empty_scopes(path: str) -> None:
    """Scopes of a capture in which nothing was launched."""
    proton.start(path, backend="cupti")

    def body() -> None:
        with proton.scope("work"):
            cupti.launch("kernel", 7)
        with proton.scope("idle"):
            pass

    replay(captured(body), "replay")


def phases(path: str) -> None:
    """A graph of the first phase is replayed in every other."""
    session = proton.start(path, backend="cupti")

    def body() -> None:
        with proton.scope("captured", {"flops": 2}):
            cupti.launch("kernel", 7)

    executable = captured(body)
    for number in range(1, 5):
        proton.data.advance_phase(session)
        replay(executable, "replay", number)


def pauses(path: str) -> None:
    """A graph is captured in one window and replayed in others."""
    session = proton.start(path, backend="cupti")

    def body() -> None:
        with proton.scope("captured", {"flops": 2}):
            cupti.launch("kernel", 7)

    executable = captured(body)
    for number in range(3):
        proton.deactivate(session, flushing=number == 1)
        replay(executable, "unseen")
        proton.activate(session)
        replay(executable, "replay")


def flushed(path: str) -> None:
    """A pause that flushes while a graph is captured."""
    session = proton.start(path, backend="cupti")

    def body() -> None:
        with proton.scope("seen"):
            cupti.launch("kernel", 7)
        proton.deactivate(session, flushing=True)
        cupti.launch("kernel", 7)
        proton.activate(session)

    replay(captured(body), "replay", 2)


def many_replays(path: str) -> None:
    """As many replays as PATH ends in, of ten graphs."""
    proton.start(path, backend="cupti")

    def body() -> None:
        with proton.scope("captured"):
            cupti.launch("kernel", 7)

    executables = [captured(body) for _ in range(10)]
    for number in range(int(path.rsplit("_", 1)[1])):
        replay(executables[number % 10], "replay")


def by_launch(path: str) -> None:
    """One entry per launch of a graph, beside a plain kernel."""
    proton.start(path, backend="cupti", mode="graph=launch")

    def body() -> None:
        with proton.scope("captured", {"flops": 2}):
            cupti.launch("kernel", 7)
            cupti.launch("kernel", 7)

    replay(captured(body), "replay", 5)
    with proton.scope("plain"):
        cupti.launch("kernel", 7)


def python_frames(path: str) -> None:
    """Graphs below Python frames."""
    proton.start(path, backend="cupti", context="python")

    def layer() -> None:
        cupti.launch("kernel", 7)

    replay(captured(layer), "replay", 2)


class DeviceTensor:
    """Numbers that a device holds; ``values`` may change between launches."""

    is_cuda, device, dtype = True, "cuda:0", "float32"

    def __init__(self, *values: float, dim: int = 0) -> None:
        self.values, self._dim = values, dim

    def dim(self) -> int:
        return self._dim

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.values),) if self._dim == 1 else (1,) * (self._dim - 1) + (2,)

    def numel(self) -> int:
        return len(self.values)

    def is_complex(self) -> bool:
        return False

    def is_floating_point(self) -> bool:
        return isinstance(self.values[0], float)

    def detach(self) -> DeviceTensor:
        return self

    contiguous = detach

    def tolist(self) -> object:
        raise RuntimeError("operation not permitted when stream is capturing")


class Device:
    """Runs the append kernels of a captured graph, as the GPU would at each launch."""

    def __init__(self) -> None:
        self._appends: list[tuple[Any, DeviceTensor, bool]] = []
        torch: Any = ModuleType("torch")
        torch.int64 = "int64"
        torch.cuda = ModuleType("torch.cuda")
        torch.cuda.device = lambda device: contextlib.nullcontext()
        torch.cuda.is_current_stream_capturing = lambda: True
        sys.modules["torch"] = torch
        from proton_bench_plugins.triton import graph_values

        graph_values._launch = self._captured

    def _captured(self, ring: Any, tensor: DeviceTensor, *, is_float: bool) -> None:
        cupti.launch("append_values", 7)
        self._appends.append((ring, tensor, is_float))

    def run(self) -> None:
        for ring, tensor, is_float in self._appends:
            entry_words = ring.size + 1
            words = (ctypes.c_int64 * (2 + ring.capacity * entry_words)).from_address(ring.address)
            start = 2 + words[0] % ring.capacity * entry_words
            words[start] = words[0] + 1
            for place, value in enumerate(tensor.values, start + 1):
                form = "d" if is_float else "q"
                number = value if is_float else int(value)
                words[place] = struct.unpack("q", struct.pack(form, number))[0]
            words[0] += 1


def left_by_devices(path: str) -> None:
    """Tensors as metrics under capture, on scopes and on launches."""
    from triton import knobs
    from triton.compiler import LazyDict

    device = Device()
    proton.start(path, backend="cupti", hook="triton")
    flops, total = DeviceTensor(2.0), DeviceTensor(8.0)
    vector = DeviceTensor(1, 2, dim=1)

    def body() -> None:
        with proton.scope("given", {"flops": flops, "vec": vector, "bytes": DeviceTensor(4.0)}):
            cupti.launch("kernel", 7)
        metadata = LazyDict({"name": "mm_kernel", "function": 1, "stream": 7})
        metadata.add(lambda: {"name": "mm", "total": total, "flops32": 8}, ())
        knobs.runtime.launch_enter_hook(metadata)
        cupti.launch("mm_kernel", 7)
        knobs.runtime.launch_exit_hook(metadata)
        refused = DeviceTensor(1.0, 2.0, dim=2)
        try:
            proton.scope("refused", {"matrix": refused}).__enter__()
        except proton.errors.MetricError as error:
            sys.stderr.write(str(error))

    executable = captured(body)
    for name, value in (("first", 1.0), ("second", 10.0), ("first", 100.0)):
        flops.values = (value,)
        device.run()
        replay(executable, name)


PROGRAMS: dict[str, Callable[[str], Any]] = {
    program.__name__: program
    for program in (
        *(metrics, hooked, two_sessions, empty_scopes, phases, pauses, python_frames),
        *(flushed, many_replays, by_launch, left_by_devices),
    )
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](sys.argv[2])
    proton.finalize()

"""Programs on the doubles, for upstream's profiler and for ours: device_programs.py FACE NAME OUT.

Run by test_cupti_differential.py and test_amd_differential.py in a process of its own; the doubles
are those of the first backend's libraries. ``FACE`` is ``upstream`` or ``ours``;
``NAME`` is one of ``PROGRAMS`` or the path of a recorded stream; ``OUT`` is the profile's path
without its suffix. ``DEVICE_PROGRAM_MODE`` in the environment is the mode of our session,
``DEVICE_PROGRAM_BACKEND`` its backends (``cupti``) and ``DEVICE_PROGRAM_DATA`` what it records;
``DEVICE_PROGRAM_CLOCK_NS`` is the first time of the device's clock.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))

from amd_doubles import Amd
from doubles import Cupti

BACKEND = os.environ.get("DEVICE_PROGRAM_BACKEND", "cupti")
Device = Cupti | Amd


class Upstream:
    """The native module of Triton's wheel, without the Python around it."""

    def __init__(self) -> None:
        from importlib import import_module

        self._native = import_module("triton._C.libproton").proton
        self._session = 0
        # Without phases (Triton 3.6.0) it cannot flush when it pauses, and files every replay of a
        # graph under the scope of the last one.
        self.has_phases = hasattr(self._native, "advance_data_phase")
        known = getattr(self._native, "get_available_profilers", lambda: ["cupti", "roctracer"])
        self.has_backend = BACKEND in known()

    def start(self, path: str) -> None:
        """Start a session with the defaults of upstream's Python."""
        self._session = self._native.start(path, "shadow", "tree", BACKEND, "")

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Open a scope."""
        number = self._native.record_scope()
        self._native.enter_scope(number, name)
        yield
        self._native.exit_scope(number, name)

    def enter(self, name: str) -> object:
        """Open a scope that ``leave`` closes."""
        number = self._native.record_scope()
        self._native.enter_scope(number, name)
        return number

    def leave(self, token: object, name: str) -> None:
        """Close what ``enter`` opened."""
        self._native.exit_scope(token, name)

    def deactivate(self, *, flushing: bool = True) -> None:
        """Pause, after recording all launches."""
        self._native.deactivate(self._session, flushing)

    def activate(self) -> None:
        """Go on."""
        self._native.activate(self._session)

    def finalize(self) -> None:
        """End the session and write its profile."""
        self._native.finalize(self._session, "hatchet")


class Ours:
    """proton_bench's public functions."""

    def __init__(self) -> None:
        import proton_bench

        self._proton = proton_bench
        self._session: Any = None

    def start(self, path: str) -> None:
        """Start a session as the environment says."""
        self._session = self._proton.start(
            path,
            backend=BACKEND,
            data=os.environ.get("DEVICE_PROGRAM_DATA", "tree"),
            mode=os.environ.get("DEVICE_PROGRAM_MODE") or None,
        )

    def scope(self, name: str) -> Any:
        """Open a scope."""
        return self._proton.scope(name)

    def enter(self, name: str) -> object:
        """Open a scope that ``leave`` closes."""
        return self._proton.enter_scope(name)

    def leave(self, token: object, name: str) -> None:
        """Close what ``enter`` opened."""
        del token
        self._proton.exit_scope(name)

    def deactivate(self, *, flushing: bool = True) -> None:
        """Pause, after recording all launches."""
        self._proton.deactivate(self._session, flushing=flushing)

    def activate(self) -> None:
        """Go on."""
        self._proton.activate(self._session)

    def finalize(self) -> None:
        """End the session and write its profile."""
        self._proton.finalize(self._session)


Face = Upstream | Ours
NEEDS_PHASES = {"window", "graph", "graph_pause"}
UNSUPPORTED = 77


def launches(face: Face, device: Device) -> None:
    """Kernels under nested scopes, on two streams and two devices."""
    device.launch("at top", 7)
    with face.scope("outer"):
        for number in range(6):
            device.launch(f"kernel {number % 2}", 7 + number % 3)
        with face.scope("inner"):
            device.launch_with("kernel 0", duration_ns=5)
            device.launch_with("kernel 0", grid=(4, 2, 1), block=(128, 1, 1))
        device.launch_with("elsewhere", device=1, context=2)
    with face.scope("outer"):
        device.launch("kernel 1", 7)


def many(face: Face, device: Device) -> None:
    """More records than a buffer holds."""
    for number in range(3):
        with face.scope(f"part {number}"):
            for _ in range(4000):
                device.launch("kernel", 7)


def refused(face: Face, device: Device) -> None:
    """Launches that the driver refuses, between others."""
    with face.scope("outer"):
        device.launch("kernel", 7)
        device.failing_launch("kernel", 1)
        device.launch("kernel", 7)


def ranges(face: Face, device: Device) -> None:
    """NVTX ranges among scopes."""
    with face.scope("outer"):
        device.nvtx_push("range")
        device.launch("kernel", 7)
        device.nvtx_push("nested")
        device.launch("kernel", 7)
        device.nvtx_pop()
        with face.scope("inner"):
            device.launch("kernel", 7)
        device.nvtx_pop()
        device.launch("kernel", 7)


def threads(face: Face, device: Device) -> None:
    """Threads with scopes of their own, one after the other so that names decide the order."""

    def work(name: str) -> None:
        with face.scope(name):
            for _ in range(50):
                device.launch("kernel", 7)

    for number in range(3):
        worker = threading.Thread(target=work, args=(f"thread {number}",))
        worker.start()
        worker.join()


def inherited(face: Face, device: Device) -> None:
    """A thread without scopes launches under those of the thread that started the session."""
    with face.scope("outer"):
        worker = threading.Thread(target=lambda: device.launch("kernel", 7))
        worker.start()
        worker.join()


def window(face: Face, device: Device) -> None:
    """Launches while the session is paused are not in it."""
    with face.scope("before"):
        device.launch("kernel", 7)
    face.deactivate()
    device.launch("unseen", 7)
    face.activate()
    with face.scope("after"):
        device.launch("kernel", 7)


def copies(face: Face, device: Device) -> None:
    """Copies and sets are recorded on request only."""
    with face.scope("outer"):
        device.copy(1, 4096, 7)
        device.set(512, 7)
        device.launch("kernel", 7)


def graph(face: Face, device: Device) -> None:
    """A graph of two streams, replayed under two scopes."""
    device.capture_begin(7)
    with face.scope("captured"):
        device.launch("first", 7)
        device.capture_join(7, 8)
        with face.scope("side"):
            device.launch("second", 8)
            device.launch("second", 8)
        device.launch("third", 7)
    executable = device.graph_instantiate(device.capture_end(7))
    for name, times in (("replay a", 3), ("replay b", 2)):
        with face.scope(name):
            for _ in range(times):
                device.graph_launch(executable, 7)


def overlapping(face: Face, device: Device) -> None:
    """Kernels of one stream that overlap, as those of a graph and of dependent launches do."""
    start_ns = int(os.environ.get("DEVICE_PROGRAM_CLOCK_NS", "0"))
    with face.scope("outer"):
        for number in range(6):
            device.set_clock(start_ns + 400 * number)
            device.launch_with(f"kernel {number % 2}", duration_ns=1000)


def graph_clone(face: Face, device: Device) -> None:
    """Clones of a graph keep where it was captured."""
    device.capture_begin(7)
    with face.scope("captured"):
        device.launch("first", 7)
        device.launch("second", 7)
    captured = device.capture_end(7)
    executable = device.graph_instantiate(device.graph_clone(captured))
    with face.scope("replay"):
        device.graph_launch(executable, 7)
        device.launch("plain", 7)


def two_graphs(face: Face, device: Device) -> None:
    """Each replay holds the kernels of its own graph only."""
    executables = []
    for number in range(2):
        device.capture_begin(7)
        with face.scope(f"capture {number}"):
            device.launch(f"kernel {number}", 7)
        executables.append(device.graph_instantiate(device.capture_end(7)))
    for number, executable in enumerate(executables):
        with face.scope(f"replay {number}"):
            device.graph_launch(executable, 7)


def graph_update(face: Face, device: Device) -> None:
    """An executable graph gets the kernels of another capture."""
    executable = 0
    for number in range(2):
        device.capture_begin(7)
        with face.scope(f"capture {number}"):
            device.launch(f"kernel {number}", 7)
        captured = device.capture_end(7)
        if number == 0:
            executable = device.graph_instantiate(captured)
        else:
            device.graph_update(executable, captured)
        with face.scope(f"replay {number}"):
            device.graph_launch(executable, 7)


def graph_child(face: Face, device: Device) -> None:
    """A captured graph is the only node of another one."""
    device.capture_begin(7)
    with face.scope("captured"):
        device.launch("first", 7)
        device.launch("second", 7)
    child = device.capture_end(7)
    parent = device.graph_create()
    device.graph_add_child(parent, child)
    executable = device.graph_instantiate(parent)
    with face.scope("replay"):
        device.graph_launch(executable, 7)


def graph_late(face: Face, device: Device) -> None:
    """A graph that `main` made before the session."""
    with face.scope("replay"):
        for _ in range(2):
            device.graph_launch(LATE[0], 7)


def graph_pause(face: Face, device: Device) -> None:
    """Part of a graph is captured while the session is paused, and one replay is."""
    device.capture_begin(7)
    with face.scope("seen"):
        device.launch("first", 7)
    face.deactivate(flushing=False)  # upstream's wait for the device would end the capture
    with face.scope("unseen"):
        device.launch("second", 7)
    face.activate()
    executable = device.graph_instantiate(device.capture_end(7))
    with face.scope("replay"):
        device.graph_launch(executable, 7)
    face.deactivate()
    device.graph_launch(executable, 7)
    face.activate()
    with face.scope("replay again"):
        device.graph_launch(executable, 7)


LATE: list[int] = []  # executable graphs that were made before the session began


def make_late(device: Device) -> None:
    """Make a graph while no session is active."""
    device.capture_begin(7)
    device.launch("first", 7)
    device.launch("second", 7)
    LATE.append(device.graph_instantiate(device.capture_end(7)))


PROGRAMS: dict[str, Callable[[Face, Device], None]] = {
    program.__name__: program
    for program in (
        *(launches, many, refused, ranges, threads, inherited, window, copies, overlapping),
        *(graph, graph_clone, two_graphs, graph_update, graph_child, graph_late, graph_pause),
    )
}


def replay(face: Face, device: Cupti, stream: Path) -> None:
    """Replay a recorded stream; each mark opens a scope in the place of its thread's last one."""
    opened: dict[int, tuple[object, str]] = {}

    def on_mark(text: str) -> None:
        thread = threading.get_ident()
        if thread in opened:
            face.leave(*opened[thread])
        opened[thread] = (face.enter(text), text)

    device.replay_stream(stream, on_mark)
    if threading.get_ident() in opened:
        face.leave(*opened[threading.get_ident()])


def main() -> None:
    """Run one program under one profiler."""
    face_name, name, output = sys.argv[1:]
    face: Face = Upstream() if face_name == "upstream" else Ours()
    needs_phases = name in NEEDS_PHASES or (BACKEND == "roctracer" and "graph" in name)
    if isinstance(face, Upstream) and needs_phases and not face.has_phases:
        sys.stderr.write("this upstream has no phases\n")
        sys.exit(UNSUPPORTED)
    if isinstance(face, Upstream) and not face.has_backend:
        sys.stderr.write(f"this upstream has no {BACKEND}\n")
        sys.exit(UNSUPPORTED)
    device: Device = Cupti() if BACKEND.startswith("cupti") else Amd()
    if name == "graph_late":
        make_late(device)
    if "DEVICE_PROGRAM_CLOCK_NS" in os.environ:
        device.set_clock(int(os.environ["DEVICE_PROGRAM_CLOCK_NS"]))
    face.start(output)
    if name in PROGRAMS:
        PROGRAMS[name](face, device)
    elif isinstance(device, Cupti):
        replay(face, device, Path(name))
    face.finalize()


if __name__ == "__main__":
    main()

"""Programs on the doubles, for upstream's profiler and for ours: cupti_programs.py FACE NAME OUT.

Run by test_cupti_differential.py in a process of its own. ``FACE`` is ``upstream`` or ``ours``;
``NAME`` is one of ``PROGRAMS`` or the path of a recorded stream; ``OUT`` is the profile's path
without its suffix. ``CUPTI_PROGRAM_MODE`` in the environment is the mode of our session,
``CUPTI_PROGRAM_BACKEND`` its backends and ``CUPTI_PROGRAM_DATA`` what it records;
``CUPTI_PROGRAM_CLOCK_NS`` is what the device's clock shows at first.
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

from doubles import Cupti


class Upstream:
    """The native module of Triton's wheel, without the Python around it."""

    def __init__(self) -> None:
        from importlib import import_module

        self._native = import_module("triton._C.libproton").proton
        self._session = 0
        # Without phases (Triton 3.6.0) it cannot flush when it pauses, and files every replay of a
        # graph under the scope of the last one.
        self.has_phases = hasattr(self._native, "advance_data_phase")

    def start(self, path: str) -> None:
        """Start a session with the defaults of upstream's Python."""
        self._session = self._native.start(path, "shadow", "tree", "cupti", "")

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
        """Pause, after what was launched has been recorded."""
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
            backend=os.environ.get("CUPTI_PROGRAM_BACKEND", "cupti"),
            data=os.environ.get("CUPTI_PROGRAM_DATA", "tree"),
            mode=os.environ.get("CUPTI_PROGRAM_MODE") or None,
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
        """Pause, after what was launched has been recorded."""
        self._proton.deactivate(self._session, flushing=flushing)

    def activate(self) -> None:
        """Go on."""
        self._proton.activate(self._session)

    def finalize(self) -> None:
        """End the session and write its profile."""
        self._proton.finalize(self._session)


Face = Upstream | Ours
NEEDS_PHASES = {"window", "graph"}
UNSUPPORTED = 77


def launches(face: Face, cupti: Cupti) -> None:
    """Kernels under nested scopes, on two streams and two devices."""
    cupti.launch("at top", 7)
    with face.scope("outer"):
        for number in range(6):
            cupti.launch(f"kernel {number % 2}", 7 + number % 3)
        with face.scope("inner"):
            cupti.launch_with("kernel 0", duration_ns=5)
            cupti.launch_with("kernel 0", grid=(4, 2, 1), block=(128, 1, 1))
        cupti.launch_with("elsewhere", device=1, context=2)
    with face.scope("outer"):
        cupti.launch("kernel 1", 7)


def many(face: Face, cupti: Cupti) -> None:
    """More records than a buffer holds."""
    for number in range(3):
        with face.scope(f"part {number}"):
            for _ in range(4000):
                cupti.launch("kernel", 7)


def refused(face: Face, cupti: Cupti) -> None:
    """Launches that the driver refuses, between others."""
    with face.scope("outer"):
        cupti.launch("kernel", 7)
        cupti.failing_launch("kernel", 1)
        cupti.launch("kernel", 7)


def ranges(face: Face, cupti: Cupti) -> None:
    """NVTX ranges among scopes."""
    with face.scope("outer"):
        cupti.nvtx_push("range")
        cupti.launch("kernel", 7)
        cupti.nvtx_push("nested")
        cupti.launch("kernel", 7)
        cupti.nvtx_pop()
        with face.scope("inner"):
            cupti.launch("kernel", 7)
        cupti.nvtx_pop()
        cupti.launch("kernel", 7)


def threads(face: Face, cupti: Cupti) -> None:
    """Threads with scopes of their own, one after the other so that names decide the order."""

    def work(name: str) -> None:
        with face.scope(name):
            for _ in range(50):
                cupti.launch("kernel", 7)

    for number in range(3):
        worker = threading.Thread(target=work, args=(f"thread {number}",))
        worker.start()
        worker.join()


def inherited(face: Face, cupti: Cupti) -> None:
    """A thread without scopes launches under those of the thread that started the session."""
    with face.scope("outer"):
        worker = threading.Thread(target=lambda: cupti.launch("kernel", 7))
        worker.start()
        worker.join()


def window(face: Face, cupti: Cupti) -> None:
    """Launches while the session is paused are not in it."""
    with face.scope("before"):
        cupti.launch("kernel", 7)
    face.deactivate()
    cupti.launch("unseen", 7)
    face.activate()
    with face.scope("after"):
        cupti.launch("kernel", 7)


def copies(face: Face, cupti: Cupti) -> None:
    """Copies and sets are in no tree unless asked for."""
    with face.scope("outer"):
        cupti.copy(1, 4096, 7)
        cupti.set(512, 7)
        cupti.launch("kernel", 7)


def graph(face: Face, cupti: Cupti) -> None:
    """A graph of two streams, replayed under two scopes."""
    cupti.capture_begin(7)
    with face.scope("captured"):
        cupti.launch("first", 7)
        cupti.capture_join(7, 8)
        with face.scope("side"):
            cupti.launch("second", 8)
            cupti.launch("second", 8)
        cupti.launch("third", 7)
    executable = cupti.graph_instantiate(cupti.capture_end(7))
    for name, times in (("replay a", 3), ("replay b", 2)):
        with face.scope(name):
            for _ in range(times):
                cupti.graph_launch(executable, 7)


def overlapping(face: Face, cupti: Cupti) -> None:
    """Kernels of one stream that overlap, as those of a graph and of dependent launches do."""
    start_ns = int(os.environ.get("CUPTI_PROGRAM_CLOCK_NS", "0"))
    with face.scope("outer"):
        for number in range(6):
            cupti.set_clock(start_ns + 400 * number)
            cupti.launch_with(f"kernel {number % 2}", duration_ns=1000)


def graph_clone(face: Face, cupti: Cupti) -> None:
    """Clones of a graph keep where it was captured."""
    cupti.capture_begin(7)
    with face.scope("captured"):
        cupti.launch("first", 7)
        cupti.launch("second", 7)
    captured = cupti.capture_end(7)
    executable = cupti.graph_instantiate(cupti.graph_clone(captured))
    with face.scope("replay"):
        cupti.graph_launch(executable, 7)
        cupti.launch("plain", 7)


def two_graphs(face: Face, cupti: Cupti) -> None:
    """Each replay holds the kernels of its own graph only."""
    executables = []
    for number in range(2):
        cupti.capture_begin(7)
        with face.scope(f"capture {number}"):
            cupti.launch(f"kernel {number}", 7)
        executables.append(cupti.graph_instantiate(cupti.capture_end(7)))
    for number, executable in enumerate(executables):
        with face.scope(f"replay {number}"):
            cupti.graph_launch(executable, 7)


def graph_update(face: Face, cupti: Cupti) -> None:
    """An executable graph gets the kernels of another capture."""
    executable = 0
    for number in range(2):
        cupti.capture_begin(7)
        with face.scope(f"capture {number}"):
            cupti.launch(f"kernel {number}", 7)
        captured = cupti.capture_end(7)
        if number == 0:
            executable = cupti.graph_instantiate(captured)
        else:
            cupti.graph_update(executable, captured)
        with face.scope(f"replay {number}"):
            cupti.graph_launch(executable, 7)


def graph_child(face: Face, cupti: Cupti) -> None:
    """A captured graph is the only node of another one."""
    cupti.capture_begin(7)
    with face.scope("captured"):
        cupti.launch("first", 7)
        cupti.launch("second", 7)
    child = cupti.capture_end(7)
    parent = cupti.graph_create()
    cupti.graph_add_child(parent, child)
    executable = cupti.graph_instantiate(parent)
    with face.scope("replay"):
        cupti.graph_launch(executable, 7)


def graph_late(face: Face, cupti: Cupti) -> None:
    """A graph of before the session; `main` made it."""
    with face.scope("replay"):
        for _ in range(2):
            cupti.graph_launch(LATE[0], 7)


def graph_pause(face: Face, cupti: Cupti) -> None:
    """Part of a graph is captured while the session is paused, and one replay is."""
    cupti.capture_begin(7)
    with face.scope("seen"):
        cupti.launch("first", 7)
    face.deactivate(flushing=False)  # upstream's wait for the device would end the capture
    with face.scope("unseen"):
        cupti.launch("second", 7)
    face.activate()
    executable = cupti.graph_instantiate(cupti.capture_end(7))
    with face.scope("replay"):
        cupti.graph_launch(executable, 7)
    face.deactivate()
    cupti.graph_launch(executable, 7)
    face.activate()
    with face.scope("replay again"):
        cupti.graph_launch(executable, 7)


LATE: list[int] = []  # executable graphs that were made before the session began


def make_late(cupti: Cupti) -> None:
    """Make a graph that no session sees being made."""
    cupti.capture_begin(7)
    cupti.launch("first", 7)
    cupti.launch("second", 7)
    LATE.append(cupti.graph_instantiate(cupti.capture_end(7)))


PROGRAMS: dict[str, Callable[[Face, Cupti], None]] = {
    program.__name__: program
    for program in (
        *(launches, many, refused, ranges, threads, inherited, window, copies, overlapping),
        *(graph, graph_clone, two_graphs, graph_update, graph_child, graph_late, graph_pause),
    )
}


def replay(face: Face, cupti: Cupti, stream: Path) -> None:
    """Replay a recorded stream; each mark opens a scope in the place of its thread's last one."""
    opened: dict[int, tuple[object, str]] = {}

    def on_mark(text: str) -> None:
        thread = threading.get_ident()
        if thread in opened:
            face.leave(*opened[thread])
        opened[thread] = (face.enter(text), text)

    cupti.replay_stream(stream, on_mark)
    if threading.get_ident() in opened:
        face.leave(*opened[threading.get_ident()])


def main() -> None:
    """Run one program under one profiler."""
    face_name, name, output = sys.argv[1:]
    face: Face = Upstream() if face_name == "upstream" else Ours()
    if isinstance(face, Upstream) and name in NEEDS_PHASES and not face.has_phases:
        sys.stderr.write("this upstream has no phases\n")
        sys.exit(UNSUPPORTED)
    cupti = Cupti()
    if name == "graph_late":
        make_late(cupti)
    if "CUPTI_PROGRAM_CLOCK_NS" in os.environ:
        cupti.set_clock(int(os.environ["CUPTI_PROGRAM_CLOCK_NS"]))
    face.start(output)
    if name in PROGRAMS:
        PROGRAMS[name](face, cupti)
    else:
        replay(face, cupti, Path(name))
    face.finalize()


if __name__ == "__main__":
    main()

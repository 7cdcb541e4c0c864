"""Launches stand below their Python frames, whatever way they are made."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

native = pytest.importorskip("proton_bench._native", reason="the native module is not built")

from python_launches import PythonSession, compiled_collector, connect  # noqa: E402


@pytest.fixture
def session() -> Iterator[PythonSession]:
    opened = PythonSession()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = compiled_collector(tmp_path_factory.mktemp("collector"))
    if library is None:
        pytest.skip("needs a C compiler")
    return library


@pytest.fixture
def without_gil(collector: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(collector))
    connect(library)
    return library


@pytest.fixture
def with_gil(collector: Path) -> ctypes.PyDLL:
    library = ctypes.PyDLL(str(collector))
    connect(library)
    return library


def recurse(session: PythonSession, depth: int) -> str:
    return recurse(session, depth - 1) if depth else session.launch()


def test_paths_are_files_lines_and_functions(session: PythonSession) -> None:
    name = session.launch()
    line = sys._getframe().f_lineno - 1

    assert session.paths()[name][-2] == f"{__file__}:{line}@{sys._getframe().f_code.co_name}"


def test_every_line_and_loop_keeps_its_path(session: PythonSession) -> None:
    for _ in range(3):
        session.launch()
        session.launch()
        recurse(session, 2), session.launch()
        [session.launch() for _ in range(2)]

    assert session.paths() == session.expected
    assert len(set(session.expected.values())) == 5


def test_the_same_functions_called_from_another_line_are_another_path(
    session: PythonSession,
) -> None:
    # Every frame but the outermost has the same address, code and instruction.
    first = recurse(session, 5)
    second = recurse(session, 5)

    paths = session.paths()
    assert paths == session.expected
    assert paths[first] != paths[second]
    assert paths[first][-7:] == paths[second][-7:]


def test_generators_callbacks_and_coroutines(session: PythonSession) -> None:
    def generated() -> Iterator[str]:
        yield session.launch()
        yield from (session.launch() for _ in range(2))

    async def awaited() -> str:
        return session.launch()

    class Compared:
        def __lt__(self, other: object) -> bool:
            return bool(session.launch())

    list(generated())
    sorted([Compared(), Compared()])
    with pytest.raises(StopIteration):
        awaited().send(None)
    eval("session.launch()")
    exec("def made():\n\n    session.launch()\nmade()", {"session": session})

    assert session.paths() == session.expected


def test_launches_of_threads_stand_below_their_own_frames(session: PythonSession) -> None:
    def work(index: int) -> None:
        for _ in range(20):
            recurse(session, index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(session.expected) == 80
    assert session.paths() == session.expected


def test_ten_thousand_frames(session: PythonSession) -> None:
    before = native.live_context_count()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        name = recurse(session, 10_000)
    finally:
        sys.setrecursionlimit(limit)

    assert native.live_context_count() > before + 10_000
    registry = pytest.importorskip("proton_bench.formats.registry")
    profile = registry.decode_profile(session.core.encode(0, "proton"), "x")
    row = next(row for row in range(len(profile)) if profile.name(row) == name)
    assert tuple(profile.path(row))[-len(session.expected[name]) - 1 : -1] == session.expected[name]


def test_launches_without_the_gil(session: PythonSession, without_gil: ctypes.CDLL) -> None:
    for _ in range(3):
        session.launch(without_gil.launch_here)
        session.launch(native.emit_launch)

    assert session.paths() == session.expected


def test_a_pending_exception_is_kept(session: PythonSession, with_gil: ctypes.PyDLL) -> None:
    before = session.core.counts()["launches"]

    for _ in range(2):
        with pytest.raises(KeyError, match="of the target"):
            with_gil.launch_with_an_error_pending()

    native.drain()
    assert session.core.counts()["launches"] == before + 2


def test_a_thread_without_python_launches_at_the_root(
    session: PythonSession, without_gil: ctypes.CDLL
) -> None:
    session.complete(without_gil.launch_on_a_thread_without_python(), "kernel of C")

    assert session.paths() == {"kernel of C": ()}


def test_recycled_code_has_its_own_name() -> None:
    for number in range(100):
        session = PythonSession()
        name = f"made_{number:03}"
        code = compile(f"def {name}(): session.launch()\n{name}()", "made", "exec")
        exec(code, {"session": session})
        paths = session.paths()
        session.close()
        del code

        assert paths == session.expected
        assert [path[-2] for path in paths.values()] == [f"made:1@{name}"]


def test_code_made_in_a_loop_is_released_and_names_stay_right(session: PythonSession) -> None:
    # 66 000 sites are more than the table of names holds at once.
    lines = "\n".join(["emit()"] * 1000)
    first = compile(lines, "made 0", "exec")
    released = weakref.ref(first)
    exec(first, {"emit": native.emit_launch})
    del first
    gc.collect()
    kept = released() is not None
    for number in range(1, 67):
        exec(compile(lines, f"made {number}", "exec"), {"emit": native.emit_launch})
    name = session.launch()

    assert kept
    assert released() is None
    assert session.paths()[name] == session.expected[name]


def test_a_session_gives_back_code_and_contexts() -> None:
    code: CodeType = compile("emit()", "made", "exec")
    released = weakref.ref(code)
    before = native.live_context_count()
    session = PythonSession()
    exec(code, {"emit": native.emit_launch})
    held = native.live_context_count()
    session.close()
    del code

    assert held > before
    assert native.live_context_count() == before
    assert released() is None


FINALIZING = """
from proton_bench import _native as native

class Late:
    def __init__(self, emit):
        self.emit = emit

    def __del__(self):
        print("launched", self.emit() > 0)

def launch():
    native.emit_launch()

session = native.Session("python", False)
session.activate()
launch()
late = Late(native.emit_launch)
late.itself = late  # lives until the interpreter ends
"""


def test_a_launch_while_the_interpreter_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FINALIZING]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "launched True\n", "")

"""``os._exit`` and ``os.exec*`` leave the files; children that leave so do not touch them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.outputs import paths, written
from integration.running import ended, source, started

from proton_bench.formats.registry import read_profile

pytestmark = pytest.mark.usefixtures("both_timelines")

pytest.importorskip("proton_bench._native")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SCOPED = """
    import multiprocessing, os, subprocess, sys, threading
    import proton_bench as proton
    with proton.scope("a"):
        pass
    proton.enter_scope("open")
"""
LEAVING = {
    "_exit": "os._exit(7)",
    "_exit of a thread": """
        threading.Thread(target=os._exit, args=[7]).start()
        threading.Event().wait()
    """,
    "_exit of two threads": """
        for _ in range(2):
            threading.Thread(target=os._exit, args=[7]).start()
        threading.Event().wait()
    """,
    "execv": "os.execv(sys.executable, [sys.executable, '-c', 'exit(7)'])",
    "execle": "os.execle('/bin/sh', 'sh', '-c', 'exit 7', {})",
    "execvp": "os.execvp('sh', ['sh', '-c', 'exit 7'])",
    "_exit after exec found nothing": """
        try:
            os.execvp("no-such-program", ["x"])
        except FileNotFoundError:
            os._exit(7)
    """,
}


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize("data", ["tree", "trace"])
@pytest.mark.parametrize("way", LEAVING)
def test_the_files_are_whole(tmp_path: Path, way: str, data: str) -> None:
    (tmp_path / "x.py").write_text(source(SCOPED, LEAVING[way]))

    words = ["-m", "proton_bench", "--no-children", "-d", data, "-n", "x", "x.py"]
    with started(words, tmp_path) as running:
        code, _, err = ended(running)

    assert code == 7, err
    timeline = {"x.chrome_trace", "x.pftrace"}
    assert written(tmp_path) == {"x.proton", *(timeline if data == "trace" else ())}
    profile = read_profile(tmp_path / "x.proton")
    assert not profile.partial
    assert "signal" not in profile.provenance
    assert paths(tmp_path / "x.proton") == [("a",), ("open",)]
    assert "exit: wrote x." in err
    assert "Traceback" not in err


CHILDREN = {
    "fork": """
        child = os.fork()
        if not child:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """,
    "fork and exec": """
        child = os.fork()
        if not child:
            os.execvp("sh", ["sh", "-c", "exit 7"])
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """,
    "multiprocessing": """
        child = multiprocessing.get_context("fork").Process(target=os._exit, args=[7])
        child.start()
        child.join()
        assert child.exitcode == 7
    """,
    "subprocess with a function before exec": """
        done = subprocess.run(["sh", "-c", "exit 7"], preexec_fn=lambda: None)
        assert done.returncode == 7
    """,
    "posix_spawn": """
        child = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], {})
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """,
}


@pytest.mark.parametrize("way", CHILDREN)
def test_a_child_that_leaves_writes_nothing(tmp_path: Path, proton: Run, way: str) -> None:
    (tmp_path / "x.py").write_text(
        source(SCOPED, CHILDREN[way], "print(sorted(os.listdir()), flush=True)")
    )

    done = proton("-n", "x", "x.py")

    assert (done.returncode, done.stdout) == (0, "['x.py']\n"), done.stderr
    assert done.stderr.count("wrote") == 1
    assert paths(tmp_path / "x.proton") == [("a",), ("open",)]


@pytest.mark.parametrize(
    "call",
    [
        "os._exit('7')",
        "os._exit()",
        "os._exit(1, 2)",
        "os.execv()",
        "os._exit(2**40)",
        "os.execv('/bin/sh', [])",
        "os.execv('/no-such', ['x'])",
        "os.execve('/bin/sh', ['sh'], {1: 2})",
    ],
)
def test_what_cannot_leave_raises_as_without_us(tmp_path: Path, proton: Run, call: str) -> None:
    lines = f"""
        try:
            {call}
        except BaseException as error:
            print(type(error).__name__, error)
    """
    (tmp_path / "x.py").write_text(source(SCOPED, lines))

    bare = subprocess.run(
        [sys.executable, "x.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    done = proton("--quiet", "-n", "x", "x.py")

    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), done.stderr
    assert paths(tmp_path / "x.proton") == [("a",), ("open",)]


def test_a_followed_child_that_leaves_writes_its_own_files(tmp_path: Path, proton: Run) -> None:
    (tmp_path / "child.py").write_text(source(SCOPED, "os._exit(7)"))
    (tmp_path / "x.py").write_text(
        "import subprocess, sys; sys.exit(subprocess.call([sys.executable, 'child.py']))"
    )

    done = proton("-n", "x", "x.py")

    assert done.returncode == 7, done.stderr
    (child,) = tmp_path.glob("x.pid*.proton")
    assert ("a",) in paths(child)


def test_a_library_leaves_the_functions_alone(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        source(
            """
            import os, posix
            import proton_bench as proton
            proton.start("x")
            print(os._exit is posix._exit, os.execv is posix.execv, flush=True)
            os._exit(7)
            """
        )
    )

    with started(["x.py"], tmp_path) as running:
        code, out, err = ended(running)

    assert (code, out) == (7, "True True\n"), err
    assert written(tmp_path) == set()

"""Timelines of whole runs: files, signals, kills, children, full disks."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from integration.outputs import slice_names, written
from integration.running import IN_C, ended, source, started, wait_for_line

pytestmark = pytest.mark.usefixtures("both_timelines")

pytest.importorskip("proton_bench._native")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TRACE = ("-m", "proton_bench", "-b", "cpu", "-d", "trace")
SCOPED = """
    import proton_bench as proton
    with proton.scope("outer"):
        with proton.scope("inner", metrics={"items": 3}):
            pass
"""
WORK = """
    import proton_bench as proton
    import pytest

    @pytest.mark.parametrize("number", range(3))
    def test_work(number):
        with proton.scope(f"work {number}"):
            pass
"""
# The target waits until both files grew, recording all the while. What is written when a timeline
# begins has some hundred bytes.
UNTIL_FLUSHED = """
    from pathlib import Path

    def size(name):
        return Path(name).stat().st_size if Path(name).exists() else 0

    def record_until(*names):
        least = [2000] * len(names)
        for _ in range(2):  # what comes the second time is behind a whole piece
            while any(map(lambda name, bytes: size(name) < bytes, names, least)):
                for _ in range(1000):
                    with proton.scope("again"):
                        pass
            least = [size(name) + 1 for name in names]
"""


def unpacked(path: Path) -> bytes:
    """Bytes of the whole members of a file that may end in the middle of one."""
    packed, whole = path.read_bytes(), b""
    while packed:
        member = zlib.decompressobj(wbits=31)
        piece = member.decompress(packed)
        if not member.eof:
            break
        whole += piece
        packed = member.unused_data
    return whole


def test_a_run_writes_the_smaller_timeline_unless_it_is_told_otherwise(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    done = proton(
        *("-b", "cpu", "-d", "trace", "-n", "x", script(SCOPED)), PROTON_BENCH_TRACE_FORMATS=""
    )

    assert done.returncode == 0, done.stderr
    assert written(tmp_path) == {"x.proton", "x.pftrace"}


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (("-n", "x"), {"x.proton", "x.chrome_trace", "x.pftrace"}),
        (("-o", "x.chrome_trace"), {"x.chrome_trace"}),
    ],
)
def test_a_run_writes_the_files_that_it_is_asked_for(
    tmp_path: Path,
    proton: Run,
    script: Callable[[str], str],
    words: tuple[str, ...],
    files: set[str],
) -> None:
    done = proton("-b", "cpu", "-d", "trace", *words, script(SCOPED))

    assert done.returncode == 0, done.stderr
    assert written(tmp_path) == files
    if "x.chrome_trace" in files:
        shown = slice_names(tmp_path / "x.chrome_trace")
        assert shown == {"outer", "inner: <items, 3>"}
    if "x.pftrace" in files:
        assert b"inner" in gzip.decompress((tmp_path / "x.pftrace").read_bytes())


def test_counters_have_a_reading_at_the_begin_and_the_end_of_a_run(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    done = proton("-b", "cpu", "-d", "trace", "-n", "x", script(SCOPED))

    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "x.chrome_trace").read_text())["traceEvents"]
    first, *_, last = (event for event in events if event["ph"] == "C")
    assert (first["name"], list(first["args"])) == ("resident memory", ["bytes"])
    (outer,) = (event for event in events if event["name"] == "outer")
    assert first["ts"] < outer["ts"]
    assert last["ts"] > outer["ts"] + outer["dur"]


def test_a_timeline_on_stdout_is_one_document(proton: Run, script: Callable[[str], str]) -> None:
    done = proton("-b", "cpu", "-d", "trace", "-n", "-", script(SCOPED))

    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert "traceEvents" in document


def test_a_killed_run_leaves_readable_partial_timelines(tmp_path: Path) -> None:
    body = """
        record_until("x.partial.chrome_trace", "x.partial.pftrace")
        ready()
        sit_in_c(ctypes.CDLL)
    """
    (tmp_path / "x.py").write_text(source(IN_C, UNTIL_FLUSHED, body))

    with started([*TRACE, "-n", "x", "x.py"], tmp_path) as running:
        wait_for_line(running)
        running.kill()
        ended(running)

    assert written(tmp_path) >= {"x.partial.chrome_trace", "x.partial.pftrace"}
    assert "again" in slice_names(tmp_path / "x.partial.chrome_trace")
    assert b"again" in unpacked(tmp_path / "x.partial.pftrace")


def test_children_have_timelines_of_their_own(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    (tmp_path / "child.py").write_text(source(SCOPED))
    parent = """
        import subprocess, sys
        subprocess.run([sys.executable, "child.py"], check=True)
    """
    words = ("-b", "cpu", "-d", "trace", "-n", "x", script(parent))
    done = proton(*words, PROTON_BENCH_QUIET="")

    assert done.returncode == 0, done.stderr
    of_child = {path.suffix: path for path in tmp_path.glob("x.pid*")}
    assert set(of_child) == {".proton", ".chrome_trace", ".pftrace"}
    assert "outer" in slice_names(of_child[".chrome_trace"])
    assert "outer" not in slice_names(tmp_path / "x.chrome_trace")
    assert of_child[".pftrace"].name in done.stderr


def test_a_forked_child_adds_nothing(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    forking = """
        import os
        import proton_bench as proton
        with proton.scope("before"):
            pass
        child = os.fork()
        if child == 0:
            with proton.scope("in child"):
                pass
            os._exit(0)
        os.waitpid(child, 0)
        with proton.scope("after"):
            pass
    """
    done = proton("-b", "cpu", "-d", "trace", "-n", "x", script(forking))

    assert done.returncode == 0, done.stderr
    assert slice_names(tmp_path / "x.chrome_trace") == {"before", "after"}


@pytest.mark.parametrize(
    ("ends_by", "code"), [("pass", 0), ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM)]
)
def test_a_program_may_close_descriptors_that_it_does_not_know(
    tmp_path: Path, proton: Run, script: Callable[[str], str], ends_by: str, code: int
) -> None:
    closing = f"""
        import os, signal
        import proton_bench as proton
        for name in ("before", "after"):
            for number in range(20_000):  # more than is kept until it is written
                with proton.scope(name):
                    pass
            os.closerange(3, 64)
            others = [os.open(f"{{number}}.other", os.O_RDWR | os.O_CREAT) for number in range(9)]
        {ends_by}
    """
    done = proton("-b", "cpu", "-d", "trace", "-n", "x", script(closing))

    assert done.returncode == code, done.stderr
    assert all(path.read_bytes() == b"" for path in tmp_path.glob("*.other"))
    if code == 0:
        assert slice_names(tmp_path / "x.chrome_trace") == {"before", "after"}
        assert {"x.proton", "x.chrome_trace", "x.pftrace"} <= written(tmp_path)


def test_a_full_disk_is_said_once_and_ends_neither_run_nor_profile(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    limited = """
        import resource, sys, time
        from pathlib import Path
        import proton_bench as proton
        sys.dont_write_bytecode = True  # Python leaves half a file of it where a disk is full
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        (Path("x.chrome_trace")).write_text("older")
        for number in range(20_000):
            with proton.scope("again"):
                pass
        print("ran to its end")
    """
    done = proton("-b", "cpu", "-d", "trace", "-n", "x", "--strict", script(limited))

    assert done.returncode == 74
    assert "ran to its end" in done.stdout
    assert "x.chrome_trace" in done.stderr
    assert "ulimit -f" in done.stderr
    assert done.stderr.count("proton: warning: cannot write") == 1
    assert (tmp_path / "x.chrome_trace").read_text() == "older"
    partial = "x.partial.chrome_trace"
    assert written(tmp_path) == {"x.proton", "x.chrome_trace", "x.pftrace", partial}
    assert partial in done.stderr
    assert isinstance(json.loads((tmp_path / partial).read_text())["traceEvents"], list)


def test_phases_of_a_run_are_written_while_it_runs(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    phases = """
        from pathlib import Path
        import proton_bench as proton
        from proton_bench import data
        for phase in range(3):
            with proton.scope(f"phase {phase}"):
                pass
            data.advance_phase()
        while not Path("x.part_2.proton").exists():
            pass
    """
    mode = "periodic_flushing:format=proton"
    done = proton("-b", "cpu", "-m", mode, "-n", "x", script(phases))

    assert done.returncode == 0, done.stderr
    assert written(tmp_path) == {f"x.part_{phase}.proton" for phase in range(4)}


def test_workers_of_a_test_run_have_timelines_of_their_own(tmp_path: Path, proton: Run) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_x.py").write_text(source(WORK))
    words = ("-n", "x", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "test_x.py")
    unset = {"PYTEST_XDIST_WORKER": "", "PYTEST_ADDOPTS": ""}
    done = proton("-b", "cpu", "-d", "trace", *words, **unset)

    assert done.returncode == 0, done.stdout + done.stderr
    shown = {name for path in tmp_path.glob("x.gw*.chrome_trace") for name in slice_names(path)}
    assert {"work 0", "work 1", "work 2"} <= shown
    assert len(list(tmp_path.glob("x.gw*.pftrace"))) == 2
    assert not list(tmp_path.glob("x.parts-*"))


def test_workers_cannot_write_phases_meanwhile(tmp_path: Path, proton: Run) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_x.py").write_text(source(WORK))
    words = ("-n", "x", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "test_x.py")
    done = proton("-b", "cpu", "-m", "periodic_flushing", *words, PYTEST_ADDOPTS="")

    assert done.returncode != 0
    assert "periodic_flushing" in done.stdout + done.stderr

"""Ctrl-C while a recording ends: everything is written, and the exit code shows it."""

from __future__ import annotations

import signal
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
FILES = {
    "tree": {"x.proton", "x.hatchet"},
    "trace": {"x.proton", "x.chrome_trace", "x.pftrace"},
}
# SIGINT comes when the profiler calls one of its own functions for the first time.
AT_CALL = """
    import os, signal
    import proton_bench as proton
    from proton_bench.recording.session import recording
    from proton_bench.recording.launcher import runner

    def interrupt(module, name, times):
        real, left = getattr(module, name), iter(range(times))
        def call(*args, **kwargs):
            for _ in left:
                signal.raise_signal(signal.SIGINT)
            return real(*args, **kwargs)
        setattr(module, name, call)

    with proton.scope("a"):
        pass
"""


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("data", ["tree", "trace"])
@pytest.mark.parametrize(
    "point",
    ["recording, 'stop_counters'", "recording, 'end_facts'", "recording, 'write_session'"]
    + ["runner.FollowedChildren, 'report'"],
)
def test_an_interrupt_waits_for_the_files(
    tmp_path: Path, proton: Run, data: str, point: str
) -> None:
    (tmp_path / "x.py").write_text(source(AT_CALL, f"interrupt({point}, 1)"))

    done = proton("-d", data, "-n", "x", "x.py", PROTON_BENCH_QUIET="")

    assert done.returncode == 130, done.stderr
    assert "interrupted at the end" in done.stderr
    assert "Traceback" not in done.stderr
    assert "KeyboardInterrupt" not in done.stderr
    assert written(tmp_path) == FILES[data]
    assert not read_profile(tmp_path / "x.proton").partial
    assert paths(tmp_path / "x.proton") == [("a",)]


def test_the_second_interrupt_ends_without_the_files(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        source(
            AT_CALL,
            """
            while not os.path.exists("x.partial.proton"):
                with proton.scope("a"):
                    pass
            interrupt(recording, 'write_session', 2)
            """,
        )
    )

    often = {"PROTON_BENCH_PARTIAL_INTERVAL_S": "0.01"}
    with started(["-m", "proton_bench", "-n", "x", "x.py"], tmp_path, **often) as running:
        code, _, err = ended(running)

    assert code == -signal.SIGINT, err
    assert written(tmp_path) == {"x.partial.proton"}
    assert read_profile(tmp_path / "x.partial.proton").partial


IN_LIBRARY = """
    proton.start("x")
    with proton.scope("a"):
        pass
    interrupt(recording, 'write_session', 1)
    try:
        proton.finalize()
    except KeyboardInterrupt:
        print("interrupted", os.path.exists("x.hatchet"), flush=True)
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_a_library_raises_once_the_files_are_written(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(source(AT_CALL, IN_LIBRARY))

    with started(["x.py"], tmp_path) as running:
        code, out, err = ended(running)

    assert (code, out) == (0, "interrupted True\nTrue\n"), err


def test_a_finalize_on_another_thread_leaves_the_signal_to_the_main_thread(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        source(
            AT_CALL,
            """
            import threading
            proton.start("x")
            interrupt(recording, 'write_session', 1)
            thread = threading.Thread(target=proton.finalize)
            try:
                thread.start()
                thread.join()
            except KeyboardInterrupt:
                print("interrupted")
            thread.join()
            """,
        )
    )

    with started(["x.py"], tmp_path) as running:
        code, out, err = ended(running)

    assert (code, out) == (0, "interrupted\n"), err
    assert written(tmp_path) == {"x.hatchet"}


ERRORS = {
    "a hook that raises": """
        import sys
        def hook(*error):
            raise TypeError("in the hook")
        sys.excepthook = hook
        raise ValueError("first")
    """,
    "a hook that leaves": """
        import sys
        def hook(*error):
            raise SystemExit(7)
        sys.excepthook = hook
        raise ValueError("first")
    """,
    "no hook": "import sys; del sys.excepthook; 1 / 0",
    "the last error at exit": """
        import atexit, sys
        atexit.register(lambda: print(sys.last_type, sys.last_value, sys.last_traceback.tb_lineno))
        def f():
            1 / 0
        f()
    """,
    "no last error after sys.exit": """
        import atexit, sys
        atexit.register(lambda: print(hasattr(sys, "last_type")))
        sys.exit("said")
    """,
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_uncaught_error_looks_as_without_us(tmp_path: Path, proton: Run, name: str) -> None:
    (tmp_path / "x.py").write_text(source(ERRORS[name]))
    script = str(tmp_path / "x.py")

    bare = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    done = proton("--quiet", "-n", "x", script)

    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), done.stderr
    assert done.stderr == bare.stderr

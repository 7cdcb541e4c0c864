"""Signals to the processes of a distributed test run, and the processes that its tests start."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from integration.outputs import nodes_of_tests
from integration.running import IN_C, ended, source, started, wait_for_line

from proton_bench.formats.registry import read_profile

pytest.importorskip("proton_bench._native")

TWO_WORKERS = (
    *("-m", "pytest", "--proton", "--proton-name", "x", "--proton-backend", "cpu"),
    *("-q", "-n", "2", "-p", "no:cacheprovider", "-p", "no:asyncio"),
)
NEVER_FLUSHED = {"PROTON_BENCH_PARTIAL_INTERVAL_S": "0"}


def write_tests(folder: Path, *parts: str) -> None:
    (folder / "test_x.py").write_text(source(IN_C, *parts))


def test_an_interrupt_ends_pytest_as_ever_and_writes_the_profile(tmp_path: Path) -> None:
    write_tests(tmp_path, "def test_sits(): ready(); sit_in_c(ctypes.CDLL)")
    alone = [word for word in TWO_WORKERS if word not in {"-n", "2"}]

    with started([*alone, "-s", "test_x.py"], tmp_path) as running:
        wait_for_line(running)
        running.send_signal(signal.SIGINT)
        code, out, err = ended(running)

    assert code == pytest.ExitCode.INTERRUPTED, err
    assert "KeyboardInterrupt" in out
    assert not read_profile(tmp_path / "x.proton").partial
    assert nodes_of_tests(tmp_path / "x.proton")[-1][-1] == "call"


def test_processes_that_a_workers_test_starts_write_profiles_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    write_tests(
        tmp_path,
        """
        import subprocess
        CHILD = "import proton_bench as proton\\nwith proton.scope('in the child'): pass"
        def test_starts():
            subprocess.run([sys.executable, "-c", CHILD], check=True)
        """,
    )
    words = ("pytest", *TWO_WORKERS[7:], "test_x.py")

    with started(["-m", "proton_bench", "-n", "x.proton", *words], tmp_path) as running:
        code, _, err = ended(running)

    (child,) = tmp_path.glob("x.pid*")
    profile = read_profile(child)
    assert code == 0, err
    assert f"children wrote {child.name}" in err
    assert [profile.name(row) for row in range(1, len(profile))] == ["in the child"]
    assert any(path[-1] == "test_starts" for path in nodes_of_tests(tmp_path / "x.proton"))

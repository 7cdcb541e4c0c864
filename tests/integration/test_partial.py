"""A killed run leaves its partial files; another run leaves none."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.outputs import written
from integration.running import IN_C, ended, source, started, wait_for_line

from proton_bench.formats.registry import read_profile

pytestmark = pytest.mark.usefixtures("both_timelines")

pytest.importorskip("proton_bench._native")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
OFTEN = {"PROTON_BENCH_PARTIAL_INTERVAL_S": "0.01"}
# The target itself waits for the file, recording all the while.
UNTIL_FLUSHED = """
    from pathlib import Path

    def record_until(name):
        while not Path(name).exists():
            with proton.scope("again"):
                pass
"""


def write_script(folder: Path, *parts: str) -> None:
    (folder / "x.py").write_text(source(IN_C, UNTIL_FLUSHED, *parts))


@pytest.mark.parametrize("library", ["ctypes.PyDLL", "ctypes.CDLL"], ids=["with GIL", "without"])
def test_a_killed_run_leaves_a_readable_partial_profile(
    tmp_path: Path, proton: Run, library: str
) -> None:
    write_script(tmp_path, f"record_until('n.partial.proton'); ready(); sit_in_c({library})")

    with started(["-m", "proton_bench", "-n", "n", "x.py"], tmp_path, **OFTEN) as running:
        wait_for_line(running)
        running.kill()
        code, _, _ = ended(running)

    assert code == -signal.SIGKILL
    profile = read_profile(tmp_path / "n.partial.proton")
    assert profile.partial
    assert "again" in {profile.name(row) for row in range(len(profile))}
    shown = proton("view", "n.partial.proton")
    assert shown.returncode == 0, shown.stderr
    assert "partial" in shown.stdout
    exported = proton("export", "n.partial.proton", "--to", "json", "-o", "y.json")
    assert exported.returncode == 0, exported.stderr
    assert read_profile(tmp_path / "y.json").partial


def test_a_partial_profile_says_which_window_was_open(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        "for _ in range(3): proton.step()",
        "record_until('n.partial.proton')",
        "import os; os._exit(7)",
    )

    words = ["-m", "proton_bench", "--steps", "3:", "-n", "n", "x.py"]
    with started(words, tmp_path, **OFTEN) as running:
        code, _, err = ended(running)

    assert code == 7, err
    facts = read_profile(tmp_path / "n.partial.proton").provenance
    (window,) = facts["windows"]
    assert window == {"begin_ns": facts["start_time_ns"]}
    assert facts["end_time_ns"] > window["begin_ns"]
    assert "recorded_ns" not in facts  # it was open


LEAVING = {
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "SIGHUP": ("os.kill(os.getpid(), signal.SIGHUP)", -signal.SIGHUP),
    "_exit": ("os._exit(7)", 7),
    "execvp": ("os.execvp('sh', ['sh', '-c', 'exit 7'])", 7),
}


@pytest.mark.parametrize("way", LEAVING)
def test_what_ends_a_program_at_once_leaves_a_partial_profile(tmp_path: Path, way: str) -> None:
    line, ends_with = LEAVING[way]
    write_script(tmp_path, "record_until('n.partial.proton')", f"import os, signal\n{line}")

    words = ["-m", "proton_bench", "--no-children", "-n", "n", "x.py"]
    with started(words, tmp_path, **OFTEN) as running:
        code, _, err = ended(running)

    assert code == ends_with, err
    assert written(tmp_path) == {"n.partial.proton"}
    assert read_profile(tmp_path / "n.partial.proton").partial


def test_a_handler_that_exits_leaves_whole_files(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        import os, signal
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        with proton.scope("a"):
            os.kill(os.getpid(), signal.SIGTERM)
        """,
    )

    with started(["-m", "proton_bench", "-n", "n.proton", "x.py"], tmp_path) as running:
        code, _, err = ended(running)

    assert code == 143, err
    assert written(tmp_path) == {"n.proton"}
    assert not read_profile(tmp_path / "n.proton").partial


def test_a_session_of_a_library_has_partial_files_where_they_are_asked_for(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        "proton.start('n')",
        "import os",
        "if 'PROTON_BENCH_PARTIAL_INTERVAL_S' in os.environ: record_until('n.partial.proton')",
        "os._exit(7)",
    )

    for variables, files in (({}, set()), (OFTEN, {"n.partial.proton"})):
        with started(["x.py"], tmp_path, **variables) as running:
            code, _, err = ended(running)

        assert code == 7, err
        assert written(tmp_path) == files


def test_a_killed_timeline_leaves_events_that_fill_no_batch(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        def has_event(name):
            try:
                return name in Path("n.partial.chrome_trace").read_text()
            except FileNotFoundError:
                return False

        with proton.scope("only one"):
            pass
        while not has_event("only one"):
            threading.Event().wait(0.01)
        ready()
        sit_in_c(ctypes.CDLL)
        """,
    )
    (tmp_path / "x.py").write_text("import threading\n" + (tmp_path / "x.py").read_text())

    with started(["-m", "proton_bench", "-d", "trace", "-n", "n", "x.py"], tmp_path) as running:
        wait_for_line(running)
        running.kill()
        ended(running)

    events = json.loads((tmp_path / "n.partial.chrome_trace").read_text())["traceEvents"]
    assert [each["ph"] for each in events if each["name"] == "only one"] == ["X"]


@pytest.mark.parametrize("output", ["n", "n.proton", "n.hatchet"])
def test_a_run_that_ends_leaves_only_its_files(tmp_path: Path, proton: Run, output: str) -> None:
    write_script(tmp_path, "record_until('n.partial.proton')")

    done = proton("-n", output, "x.py", **OFTEN)

    assert done.returncode == 0, done.stderr
    assert written(tmp_path) == ({"n.proton", "n.hatchet"} if output == "n" else {output})
    assert not read_profile(tmp_path / sorted(written(tmp_path))[-1]).partial


def test_each_phase_has_a_partial_profile_of_its_own(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        from proton_bench import data
        data.advance_phase(0)
        record_until('n.part_1.partial.proton')
        ready()
        sit_in_c(ctypes.CDLL)
        """,
    )

    with started(["-m", "proton_bench", "-n", "n", "x.py"], tmp_path, **OFTEN) as running:
        wait_for_line(running)
        running.kill()
        ended(running)

    assert read_profile(tmp_path / "n.part_1.partial.proton").partial


def test_a_test_run_is_flushed_too(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        source(
            IN_C,
            UNTIL_FLUSHED,
            """
            def test_x():
                Path("n.partial.proton").unlink(missing_ok=True)  # from before this test
                record_until("n.partial.proton")
                ready()
                sit_in_c(ctypes.CDLL)
            """,
        )
    )
    words = ["-m", "pytest", "--proton", "--proton-name", "n", "-s", "-p", "no:cacheprovider"]

    with started([*words, "test_x.py"], tmp_path, **OFTEN) as running:
        wait_for_line(running)
        running.kill()
        ended(running)

    profile = read_profile(tmp_path / "n.partial.proton")
    assert profile.partial
    assert "test_x" in {profile.name(row) for row in range(len(profile))}


@pytest.mark.parametrize("interval", ["soon", "-1", "nan"])
def test_an_interval_that_is_not_a_number_of_seconds_is_refused(
    tmp_path: Path, proton: Run, interval: str
) -> None:
    write_script(tmp_path)

    done = proton("-n", "n", "x.py", PROTON_BENCH_PARTIAL_INTERVAL_S=interval)

    assert done.returncode == 2
    assert "PROTON_BENCH_PARTIAL_INTERVAL_S" in done.stderr
    assert written(tmp_path) == set()

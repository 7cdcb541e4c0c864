"""Recordings meet links, pipes, folders, full disks and other recordings at their paths."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from integration.outputs import RunPytest, frame_names, slice_names, written
from integration.running import IN_C, ended, source, started, wait_for_line

from proton_bench.formats.registry import read_profile

pytestmark = pytest.mark.usefixtures("both_timelines")

pytest.importorskip("proton_bench._native")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
OFTEN = {"PROTON_BENCH_PARTIAL_INTERVAL_S": "0.01"}
TRACE = ("-b", "cpu", "-d", "trace", "-n", "x")
WHOLE = {"x.proton", "x.chrome_trace", "x.pftrace"}
PARTIAL = ("x.partial.proton", "x.partial.chrome_trace", "x.partial.pftrace")
OLDER_NAMES = ("x.partial.proton.new", "x.proton.new", "x.partial.hatchet")
KINDS = ("link", "pipe", "folder")

WORK = """
    import glob
    import proton_bench as proton

    def record_until(pattern):
        while not glob.glob(pattern):
            with proton.scope("again"):
                pass
"""
# Long enough that partial files of both kinds are written, wherever they go.
MEANWHILE = """
    import os
    record_until(f"x.partial.{os.getpid()}.proton")
    record_until(f"x.partial.{os.getpid()}.chrome_trace")
    record_until(f"x.partial.{os.getpid()}.pftrace")
    while not os.path.getsize(f"x.partial.{os.getpid()}.pftrace"):
        pass
"""
# The program itself fills the rest of the disk.
FILLING = """
    import os, sys
    sys.dont_write_bytecode = True
    with open("small/filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
"""


def plant(kind: str, *places: Path) -> None:
    for place in places:
        victim = place.parent / "victim"
        victim.write_text("mine")
        if kind == "pipe":
            os.mkfifo(place)
        elif kind == "folder":
            place.mkdir()
        else:
            place.symlink_to("victim")


def is_as_planted(kind: str, place: Path) -> bool:
    mode = place.lstat().st_mode
    if kind == "pipe":
        return stat.S_ISFIFO(mode)
    if kind == "folder":
        return stat.S_ISDIR(mode) and not list(place.iterdir())
    return stat.S_ISLNK(mode) and os.readlink(place) == "victim"


def frames_of(file: Path) -> set[str]:
    profile = read_profile(file)
    return {profile.name(row) for row in range(len(profile))}


def scratch_files(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".proton-tmp-")]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder that is a file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no mount: {error}")
    if done.returncode != 0:
        pytest.skip(f"file systems cannot be mounted here: {done.stderr}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_planted_at_a_partial_name_is_followed_or_in_the_way(
    tmp_path: Path, proton: Run, script: Callable[[str], str], kind: str
) -> None:
    places = [tmp_path / name for name in (*PARTIAL, *OLDER_NAMES)]
    plant(kind, *places)

    done = proton(*TRACE, script(source(WORK, MEANWHILE)), **OFTEN)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "victim").read_text() == "mine"
    assert all(is_as_planted(kind, place) for place in places)
    assert written(tmp_path) == {*WHOLE, "victim", *(place.name for place in places)}
    assert not read_profile(tmp_path / "x.proton").partial
    assert slice_names(tmp_path / "x.chrome_trace") == {"again"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_leaves_its_partial_files_beside_what_was_planted(
    tmp_path: Path, kind: str
) -> None:
    places = [tmp_path / name for name in PARTIAL]
    plant(kind, *places)
    (tmp_path / "x.py").write_text(source(IN_C, WORK, MEANWHILE, "ready(); sit_in_c(ctypes.CDLL)"))

    with started(["-m", "proton_bench", *TRACE, "x.py"], tmp_path, **OFTEN) as running:
        wait_for_line(running)
        running.kill()
        ended(running)

    assert all(is_as_planted(kind, place) for place in places)
    assert (tmp_path / "victim").read_text() == "mine"
    for suffix in ("proton", "chrome_trace", "pftrace"):
        assert read_profile(tmp_path / f"x.partial.{running.pid}.{suffix}").partial


def test_links_at_the_outputs_stay_and_what_they_lead_to_is_replaced(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    (tmp_path / "far").mkdir()
    for name in WHOLE:
        (tmp_path / name).symlink_to(f"far/{name}")
    (tmp_path / "far" / "x.proton").write_text("older")

    done = proton(*TRACE, script(source(WORK, 'with proton.scope("again"): pass')))

    assert done.returncode == 0, done.stderr
    assert all((tmp_path / name).is_symlink() for name in WHOLE)
    assert written(tmp_path) == {*WHOLE, "far"}
    assert written(tmp_path / "far") == WHOLE
    assert not read_profile(tmp_path / "far" / "x.proton").partial


def test_parts_of_a_run_follow_the_same_rules(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    phases = """
        from proton_bench import data
        for phase in range(3):
            with proton.scope("again"):
                pass
            data.advance_phase()
        record_until("far/x.part_2.proton")
    """
    (tmp_path / "far").mkdir()
    (tmp_path / "x.part_2.proton").symlink_to("far/x.part_2.proton")
    plant("link", *(tmp_path / f"x.part_{number}.partial.proton" for number in range(4)))
    mode = "periodic_flushing:format=proton"

    done = proton("-b", "cpu", "-m", mode, "-n", "x", script(source(WORK, phases)), **OFTEN)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "victim").read_text() == "mine"
    assert (tmp_path / "x.part_2.proton").is_symlink()
    assert all(
        not read_profile(tmp_path / f"x.part_{number}.proton").partial for number in range(4)
    )
    assert not scratch_files(tmp_path)
    assert not scratch_files(tmp_path / "far")


def test_what_is_planted_for_a_child_is_not_followed(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    child = source(WORK, "import os; record_until(f'x.pid{os.getpid()}.partial.*.proton')")
    (tmp_path / "child.py").write_text(child)
    parent = f"""
        import subprocess
        # The number of the shell is that of the child.
        line = "ln -s victim x.pid$$.partial.proton; exec {sys.executable} child.py"
        subprocess.run(["sh", "-c", line], check=True)
    """
    (tmp_path / "victim").write_text("mine")

    done = proton("-b", "cpu", "-n", "x", script(parent), **OFTEN)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "victim").read_text() == "mine"
    (planted,) = tmp_path.glob("x.pid*.partial.proton")
    whole = planted.with_name(planted.name.replace(".partial", ""))
    assert planted.is_symlink()
    assert not read_profile(whole).partial
    assert len(list(tmp_path.glob("x.pid*.partial.*"))) == 1


def test_a_test_run_goes_around_what_was_planted(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, run_pytest: RunPytest
) -> None:
    for name, value in OFTEN.items():
        monkeypatch.setenv(name, value)
    body = "def test_x():\n    import os; record_until(f'x.partial.{os.getpid()}.proton')"
    pytester.makepyfile(source(WORK, body))
    places = [pytester.path / name for name in (PARTIAL[0], *OLDER_NAMES)]
    plant("link", *places)

    done = run_pytest("--proton", "--proton-name", "x")

    assert done.ret == 0, done.outlines
    assert (pytester.path / "victim").read_text() == "mine"
    assert all(is_as_planted("link", place) for place in places)
    assert not read_profile(pytester.path / "x.proton").partial
    assert not list(pytester.path.glob("x.partial.*.proton"))
    assert not scratch_files(pytester.path)


@pytest.mark.parametrize("suffix", ["proton", "hatchet", "chrome_trace"])
def test_a_pipe_at_the_output_is_written_to_and_stays(
    tmp_path: Path, proton: Run, script: Callable[[str], str], suffix: str
) -> None:
    pipe = tmp_path / f"x.{suffix}"
    os.mkfifo(pipe)
    data = "trace" if suffix == "chrome_trace" else "tree"
    body = source(WORK, 'with proton.scope("again"): pass')

    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        words = ("-b", "cpu", "-d", data, "-n", f"x.{suffix}", "--strict", script(body))
        done = proton(*words, PROTON_BENCH_QUIET="")
        reader.terminate() if done.returncode else None
        assert reader.stdout is not None
        content = reader.stdout.read()

    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr  # what was in the pipe is not there for a summary
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / f"y.{suffix}").write_bytes(content)
    assert len(read_profile(tmp_path / f"y.{suffix}")) > 1


def test_a_pipe_that_nothing_reads_does_not_hold_the_program(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    os.mkfifo(tmp_path / "x.hatchet")

    done = proton("-b", "cpu", "-n", "x.hatchet", "--strict", script(WORK))

    assert done.returncode == 74
    assert "x.hatchet" in done.stderr
    assert "Traceback" not in done.stderr
    assert written(tmp_path) == {"x.hatchet"}


@pytest.mark.parametrize(("suffix", "strict"), [("proton", True), ("hatchet", False)])
def test_a_full_disk_at_the_end_leaves_the_older_file_and_the_partial_one(
    small_disk: Path,
    proton: Run,
    script: Callable[[str], str],
    suffix: str,
    strict: bool,
) -> None:
    older = small_disk / f"x.{suffix}"
    older.write_text("older")
    program = script(source(WORK, "record_until('small/x.partial.proton')", FILLING))
    words = ["-b", "cpu", "-n", f"small/x.{suffix}", *(["--strict"] if strict else [])]

    done = proton(*words, program, **OFTEN)

    assert done.returncode == (74 if strict else 0), done.stderr
    assert f"x.{suffix}" in done.stderr
    assert "Traceback" not in done.stderr
    assert older.read_text() == "older"
    assert read_profile(small_disk / "x.partial.proton").partial
    assert not scratch_files(small_disk)


def test_a_disk_that_fills_up_under_a_timeline_keeps_what_was_whole(
    small_disk: Path, proton: Run, script: Callable[[str], str]
) -> None:
    body = """
        def is_there():
            try:
                return "again" in open("small/x.partial.chrome_trace").read()
            except FileNotFoundError:
                return False
        with proton.scope("again"):
            pass
        while not is_there():
            pass
    """
    more = """
        for number in range(50_000):
            with proton.scope(f"more {number}"):
                pass
    """
    (small_disk / "x.chrome_trace").write_text("older")

    done = proton(
        *TRACE[:-1], "small/x", "--strict", script(source(WORK, body, FILLING, more)), **OFTEN
    )

    assert done.returncode == 74
    assert (small_disk / "x.chrome_trace").read_text() == "older"
    partial = json.loads((small_disk / "x.partial.chrome_trace").read_text())
    assert "again" in {event["name"] for event in partial["traceEvents"]}
    assert not scratch_files(small_disk)


def test_a_disk_that_turns_read_only_is_said(
    small_disk: Path, proton: Run, script: Callable[[str], str]
) -> None:
    remount = (
        'import subprocess; subprocess.run(["mount", "-o", "remount,ro", "small"], check=True)'
    )
    (small_disk / "x.proton").write_text("older")

    done = proton("-b", "cpu", "-n", "small/x.proton", "--strict", script(source(WORK, remount)))

    assert done.returncode == 74, done.stderr
    assert "x.proton" in done.stderr
    assert (small_disk / "x.proton").read_text() == "older"


def test_two_recordings_of_one_name_leave_whole_files_of_one(tmp_path: Path) -> None:
    together = """
        import os, sys
        from pathlib import Path
        mine, other = sys.argv[1:]
        with proton.scope(mine):
            pass
        Path(f"{mine}.here").touch()
        record_until(f"{other}.here")
        record_until("x.partial.*.chrome_trace")  # of the one that came second
        record_until("x.partial.*.proton")
        Path(f"{mine}.seen").touch()
        record_until(f"{other}.seen")
    """
    (tmp_path / "x.py").write_text(source(WORK, together))
    (tmp_path / "x.partial.chrome_trace").write_text("of a killed run")

    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "proton_bench", *TRACE, "x.py", *names],
            cwd=tmp_path,
            env={**os.environ, **OFTEN},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for names in (("first", "second"), ("second", "first"))
    ]
    errors = [run.communicate(timeout=300)[1] for run in runs]

    assert [run.returncode for run in runs] == [0, 0], errors
    assert {name for name in written(tmp_path) if not name.endswith(("here", "seen"))} == WHOLE
    found = frames_of(tmp_path / "x.proton") & {"first", "second"}
    assert len(found) == 1
    assert slice_names(tmp_path / "x.chrome_trace") & {"first", "second"} == found


def test_the_end_of_a_recording_leaves_the_partial_files_of_another(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    sitting = """
        with proton.scope("first"):
            pass
        record_until("x.partial.proton")
        ready()
        sit_in_c(ctypes.CDLL)
    """
    (tmp_path / "first.py").write_text(source(IN_C, WORK, sitting))

    with started(["-m", "proton_bench", *TRACE, "first.py"], tmp_path, **OFTEN) as running:
        wait_for_line(running)
        done = proton(*TRACE, script(source(WORK, 'with proton.scope("second"): pass')), **OFTEN)
        assert done.returncode == 0, done.stderr
        running.kill()
        ended(running)

    assert "second" in frames_of(tmp_path / "x.proton")
    left = frames_of(tmp_path / "x.partial.proton")
    assert "first" in left
    assert "second" not in left
    # No process holds them any more, so the next recording takes the names.
    done = proton(*TRACE, script(source(WORK, 'with proton.scope("third"): pass')), **OFTEN)
    assert done.returncode == 0, done.stderr
    assert written(tmp_path) == WHOLE


def test_a_forked_child_that_lives_longer_than_its_parent_holds_no_partial_file(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    forking = """
        import signal
        for suffix in ("proton", "chrome_trace", "pftrace"):
            record_until(f"x.partial.{suffix}")
        child = os.fork()
        if child == 0:
            os.closerange(0, 3)
            signal.pause()
        os.write(1, f"{child}\\nready\\n".encode())
        sit_in_c(ctypes.CDLL)
    """
    (tmp_path / "first.py").write_text(source(IN_C, WORK, forking))

    with started(["-m", "proton_bench", *TRACE, "first.py"], tmp_path, **OFTEN) as running:
        child = int(wait_for_line(running, ""))
        try:
            wait_for_line(running)
            running.kill()
            ended(running)
            program = source(WORK, 'with proton.scope("second"): pass')
            done = proton(*TRACE, script(program), **OFTEN)
        finally:
            os.kill(child, signal.SIGKILL)

    assert done.returncode == 0, done.stderr
    assert written(tmp_path) == WHOLE


def test_the_partial_file_that_was_analysed_is_not_touched(
    tmp_path: Path, proton: Run, script: Callable[[str], str]
) -> None:
    done = proton("-b", "cpu", "-n", "x.hatchet", script(WORK))
    assert done.returncode == 0, done.stderr
    (tmp_path / "x.hatchet").rename(tmp_path / "x.partial.hatchet")
    before = (tmp_path / "x.partial.hatchet").read_bytes()

    exported = proton("export", "x.partial.hatchet", "--to", "json", "-o", "x.json")

    assert exported.returncode == 0, exported.stderr
    assert (tmp_path / "x.partial.hatchet").read_bytes() == before
    assert frame_names(tmp_path / "x.partial.hatchet")

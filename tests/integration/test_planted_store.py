"""Nothing outside of ``.proton`` changes, whatever a repository put in place of its parts.

Each part of a store that all commands have used is replaced in turn, and then every command that
touches the store runs. No command may wait for a pipe either.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.stored import put, stored_profile, stored_run
from fakes.synthetic import noisy

from proton_bench.cli import main
from proton_bench.errors import OutputError
from proton_bench.formats.registry import write_profile
from proton_bench.gate.experiment import series
from proton_bench.gate.experiment.processes.fresh_process import Ended, Launch
from proton_bench.support.files import write_file

PATIENCE_S = 300  # only a hang meets it
ENTRY, EXPERIMENT = "20260101T000000-00000000", "experiment"
# Parts of a store; generated names have stand-ins.
PLACES = (
    "",
    "baselines",
    "baselines/main",
    "baselines/main/promoted",
    f"baselines/main/{ENTRY}",
    f"baselines/main/{ENTRY}/000.proton",
    *(f"{kind}{below}" for kind in ("ab", "gate") for below in ("", "/.gitignore")),
    f"ab/{EXPERIMENT}",
    *(
        f"ab/{EXPERIMENT}/{name}"
        for name in (
            "manifest.json",
            "result.json",
            "lock",
            "pair-001-base.log",
            "pair-001-base.proton",
            "pair-001-base.modules.json",
        )
    ),
)
COMMANDS = (
    "baseline list",
    "baseline show main",
    "baseline save main runs",
    "baseline save other runs",
    "baseline promote main",
    "baseline export main copy",
    "gate main runs --save main",
    "gate --runs 1 --save main main -- -b cpu bench.py",
    "ab --resume last",
    "ab --runs 1 --base bench.py -- -b cpu bench.py",
    "baseline save main runs",
    "baseline promote main",
    "baseline rm main --candidates",
    "baseline rm main",
)


def made_up(launch: Launch) -> Ended:
    """Write what a process of an experiment would have recorded."""
    name = launch.log.with_suffix("")
    try:
        write_profile(noisy({"step/kernel": 1e5}, name.name), Path(f"{name}.proton"))
        write_file(Path(f"{name}.modules.json"), "[]")
    except OutputError as error:
        return Ended(error.exit_code, 0.5)
    return Ended(0, 0.5)


def quicken(patch: pytest.MonkeyPatch) -> None:
    """Leave out processes."""
    patch.setattr(series, "run_fresh", made_up)


@contextmanager
def in_time() -> Iterator[None]:
    """Raise if a command waits for ever."""

    def give_up(*_: object) -> None:
        raise AssertionError("a command hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose store every command has used once."""
    project = tmp_path_factory.mktemp("used") / "project"
    put(project / "runs", stored_run(), stored_run(200.0))
    for name in ("pyproject.toml", "bench.py"):
        (project / name).write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        quicken(patch)
        patch.setenv("XDG_CACHE_HOME", str(project.with_name("cache")))
        for words in ("save main runs", "promote main"):
            assert main(["baseline", *words.split()]) == 0
        main(["ab", "--runs", "1", "--base", "bench.py", "--", "-b", "cpu", "bench.py"])
        main(["gate", "--runs", "1", "main", "--", "-b", "cpu", "bench.py"])
    return project


@pytest.fixture
def project(used: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    quicken(monkeypatch)
    shutil.copytree(used, tmp_path / "project", symlinks=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def outside(tmp_path: Path, used: Path) -> Path:
    """Folders and files that look like a store's, and another file."""
    folder = tmp_path / "outside"
    shutil.copytree(used / ".proton", folder / "folder")
    (folder / "folder" / "mine").write_bytes(b"x")
    (folder / "folder" / ".proton-tmp-0123456789abcdef").write_bytes(b"x")
    write_profile(stored_profile(), folder / "file", format="proton")
    os.link(folder / "file", folder / "its second name")
    return folder


PLANTS: dict[str, Callable[[Path, Path], None]] = {
    "link to a folder": lambda place, outside: place.symlink_to(outside / "folder"),
    "link to a file": lambda place, outside: place.symlink_to(outside / "file"),
    "link to what is not there": lambda place, outside: place.symlink_to(outside / "new"),
    "link to itself": lambda place, _: place.symlink_to(place.name),
    "second name of a file": lambda place, outside: os.link(outside / "file", place),
    "pipe": lambda place, _: os.mkfifo(place),
    "file": lambda place, _: place.write_bytes(b"x"),
    "folder": lambda place, _: (place / "full").mkdir(parents=True),
}


def place_in(store: Path, place: str) -> Path:
    """Return where a part of the store lies in this one."""
    found = store
    for word in Path(place).parts:
        if word in {ENTRY, EXPERIMENT}:
            found = min(each for each in found.iterdir() if not each.name.startswith("."))
        else:
            found /= word
    return found


def clear(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for each in [folder, *folder.rglob("*")]:
        status = each.lstat()
        content = each.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(each)] = (status.st_mode, status.st_ino, status.st_mtime_ns, content)
    return found


def pairs() -> list[tuple[str, str]]:
    """Two plants for each place and seven places for each plant."""
    plants = list(PLANTS)
    return [(place, plants[(at + step) % 8]) for at, place in enumerate(PLACES) for step in (0, 3)]


@pytest.mark.nightly(keep=14)
@pytest.mark.parametrize(("place", "plant"), pairs())
def test_no_command_changes_what_lies_outside(
    project: Path, outside: Path, capfd: pytest.CaptureFixture[str], place: str, plant: str
) -> None:
    planted = place_in(project / ".proton", place)
    clear(planted)
    PLANTS[plant](planted, outside)
    before = snapshot(outside)
    inputs = {name: snapshot(project / name) for name in ("runs", "bench.py", "pyproject.toml")}

    for command in COMMANDS:
        with in_time():
            code = main(command.split())
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err, (command, err)
        assert code in range(6) or code == 74, (command, code, err)
        assert snapshot(outside) == before, command

    assert {name: snapshot(project / name) for name in inputs} == inputs
    assert {each.name for each in project.iterdir()} <= {".proton", "copy", *inputs}


@pytest.mark.nightly(keep=5)
@pytest.mark.parametrize("plant", ["link to a folder", "link to what is not there", "pipe"])
@pytest.mark.parametrize("place", ["", "pytest", "baselines/main", "baselines"])
def test_no_gate_of_a_test_run_changes_what_lies_outside(
    project: Path, outside: Path, place: str, plant: str
) -> None:
    (project / "test_x.py").write_text("def test_a(proton_bench): proton_bench(sum, [1])\n")
    planted = project / ".proton" / place
    clear(planted)
    PLANTS[plant](planted, outside)
    before = snapshot(outside)

    words = (
        "--proton-runs=1",
        "--proton-compare=main",
        "--proton-save=main",
        "--proton-backend=cpu",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_x.py", *words],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert snapshot(outside) == before

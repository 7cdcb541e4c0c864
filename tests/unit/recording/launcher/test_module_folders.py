"""Modules of another version come first, whatever the target or pytest puts in front."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.recording.launcher.run_options import RunOptions, runner_command
from proton_bench.recording.launcher.target import TargetKind


@pytest.fixture
def two_versions(tmp_path: Path) -> Path:
    """A module in two versions, ``here`` and ``ahead`` of it."""
    for version in ("here", "ahead"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "thing.py").write_text(f"VERSION = {version!r}\n")
        (tmp_path / version / "conftest.py").write_text(f"print('conftest', {version!r})\n")
    return tmp_path


def run(folder: Path, kind: TargetKind, target: str, *arguments: str) -> str:
    """Return the output of a target with one folder first in its path."""
    options = RunOptions(
        kind=kind,
        target=target,
        name=str(folder / "out"),
        formats=("proton",),
        folder=str(folder),
        backend="cpu",
        quiet=True,
        first_folders=(str(folder / "ahead"),),
    )
    done = subprocess.run(
        runner_command(options, arguments),
        cwd=folder / "here",
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_a_script_finds_what_is_ahead_before_what_lies_beside_it(two_versions: Path) -> None:
    script = two_versions / "here" / "script.py"
    script.write_text("import thing; print('thing', thing.VERSION)\n")

    assert run(two_versions, TargetKind.SCRIPT, str(script)) == "thing ahead\n"


def test_code_finds_what_is_ahead_before_the_current_folder(two_versions: Path) -> None:
    code = "import thing; print('thing', thing.VERSION)"

    assert run(two_versions, TargetKind.CODE, code) == "thing ahead\n"


@pytest.mark.parametrize("package", [False, True])
def test_tests_are_those_of_their_place_and_import_what_is_ahead(
    two_versions: Path, package: bool
) -> None:
    tests = two_versions / "here" / "tests"
    tests.mkdir()
    if package:
        (tests / "__init__.py").write_text("")
    beside = "tests.beside" if package else "beside"
    (tests / "beside.py").write_text("")
    (tests / "test_it.py").write_text(
        f"import thing\nimport {beside}\ndef test_it():\n    print('thing', thing.VERSION)\n"
    )

    words = ("-q", "-s", "-p", "no:cacheprovider", "tests")
    said = run(two_versions, TargetKind.PYTEST, "", *words)

    assert "conftest here\n" in said
    assert "conftest ahead\n" not in said
    assert "thing ahead\n" in said


def test_path_of_the_settings_stays_behind(two_versions: Path) -> None:
    here = two_versions / "here"
    (here / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (here / "test_it.py").write_text(
        "import thing\ndef test_it():\n    print('thing', thing.VERSION)\n"
    )

    said = run(two_versions, TargetKind.PYTEST, "", "-q", "-s", "-p", "no:cacheprovider")

    assert "thing ahead\n" in said


def test_processes_of_the_target_find_what_is_ahead_on_their_path(
    two_versions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the folder of their own script comes before it."""
    monkeypatch.setenv("PYTHONPATH", str(two_versions / "here"))
    child = two_versions / "child.py"
    child.write_text("import thing; print('thing', thing.VERSION)\n")
    code = f"import subprocess, sys; subprocess.run([sys.executable, {str(child)!r}])"
    command = ("-c", shlex.join([sys.executable, str(child)]))

    assert run(two_versions, TargetKind.CODE, code) == "thing ahead\n"
    assert "thing ahead\n" in run(two_versions, TargetKind.PROGRAM, "/bin/sh", *command)

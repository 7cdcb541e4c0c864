from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from proton_bench.cli.target import TargetWords, interpreter_flags, read_target
from proton_bench.errors import UsageError
from proton_bench.recording.launcher.target import PYTEST_AS_MODULE, TargetKind


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").touch()
    return tmp_path


def read(*words: str) -> TargetWords:
    return read_target(words, ("view", "export"))


def test_a_script_keeps_its_arguments() -> None:
    assert read("x.py", "-n", "--", "--help") == TargetWords(
        TargetKind.SCRIPT, "x.py", ("-n", "--", "--help")
    )


def test_pytest_is_known_by_its_name() -> None:
    assert read("pytest", "-q") == TargetWords(TargetKind.PYTEST, "", ("-q",))
    assert read("/usr/bin/py.test").kind is TargetKind.PYTEST


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("x.py a -m b", TargetWords(TargetKind.SCRIPT, "x.py", ("a", "-m", "b"))),
        ("-u -W error x.py", TargetWords(TargetKind.SCRIPT, "x.py", (), ("-u", "-W", "error"))),
        ("-Werror -Xdev x.py", TargetWords(TargetKind.SCRIPT, "x.py", (), ("-Werror", "-Xdev"))),
        ("-m pkg -c a", TargetWords(TargetKind.MODULE, "pkg", ("-c", "a"))),
        ("-Bm pkg a", TargetWords(TargetKind.MODULE, "pkg", ("a",), ("-B",))),
        ("-mpkg a", TargetWords(TargetKind.MODULE, "pkg", ("a",))),
        ("- a", TargetWords(TargetKind.STDIN, "-", ("a",))),
        ("-Wh -mV", TargetWords(TargetKind.MODULE, "V", (), ("-Wh",))),
        ("-u -VV", TargetWords(TargetKind.PROGRAM, sys.executable, ("-u", "-VV"))),
        ("--help-all", TargetWords(TargetKind.PROGRAM, sys.executable, ("--help-all",))),
        ("-c pass a", TargetWords(TargetKind.CODE, "pass", ("a",))),
        ("-m pytest -q", TargetWords(TargetKind.PYTEST, PYTEST_AS_MODULE, ("-q",))),
    ],
)
def test_python_is_read_like_the_interpreter_does(words: str, expected: TargetWords) -> None:
    assert read("python", *words.split()) == expected
    assert read(sys.executable, *words.split()) == expected


@pytest.mark.parametrize("words", [[], ["-u"], ["-m"], ["-c"], ["-S", "x.py"], ["-BS"]])
def test_python_without_anything_to_run_is_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    with pytest.raises(UsageError, match="proton python"):
        read("python", *words)


def test_another_interpreter_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="is not the interpreter"):
        read(str(folder / "python3"), "x.py")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("viw", "; did you mean 'view'?"),
        ("Exprot", "; did you mean 'export'?"),
        ("y.py", ": check"),
    ],
)
def test_a_missing_script_may_have_been_a_command(word: str, meant: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"{word!r} does not exist{meant}")):
        read(word)


def test_no_target_says_what_to_give() -> None:
    with pytest.raises(UsageError, match="python or a program"):
        read()


def test_programs_and_python_scripts_without_a_suffix_are_distinguished(folder: Path) -> None:
    (folder / "shell").write_text("#!/bin/sh\n")
    (folder / "shell").chmod(0o755)
    (folder / "tool").write_text("#!/usr/bin/env python3\n")

    assert read("tool").kind is TargetKind.SCRIPT
    assert read("ls", "-l") == TargetWords(TargetKind.PROGRAM, "ls", ("-l",))
    assert read("shell") == TargetWords(TargetKind.PROGRAM, str(folder / "shell"))
    assert read(os.path.realpath("/bin/ls")).kind is TargetKind.PROGRAM


def test_a_program_that_may_not_be_executed_is_refused(folder: Path) -> None:
    (folder / "shell").write_text("#!/bin/sh\n")

    with pytest.raises(UsageError, match="not executable"):
        read("shell")


def test_a_folder_needs_a_main(folder: Path) -> None:
    (folder / "app").mkdir()
    with pytest.raises(UsageError, match="without a __main__"):
        read("app")

    (folder / "app" / "__main__.py").touch()
    assert read("app").kind is TargetKind.SCRIPT


@pytest.mark.parametrize(
    ("command_line", "flags"),
    [
        ("python /bin/proton x.py -u", []),
        ("python -m proton_bench -n x", []),
        ("python -u -W error -m proton_bench", ["-u", "-W", "error"]),
        ("python -Bm proton_bench", ["-B"]),
        ("python -X dev -OO /bin/proton", ["-X", "dev", "-OO"]),
        ("python -c code", []),
    ],
)
def test_flags_of_the_interpreter_are_found(command_line: str, flags: list[str]) -> None:
    assert interpreter_flags(command_line.split()) == flags

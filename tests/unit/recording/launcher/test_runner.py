from __future__ import annotations

import sys

import pytest

from proton_bench.errors import BackendUnavailableError, UsageError
from proton_bench.recording.launcher.runner import RunOptions, report_error, runner_command
from proton_bench.recording.launcher.target import TargetKind

OPTIONS = RunOptions(
    kind=TargetKind.SCRIPT,
    target="x\udcff\n.py",
    name="/data/x",
    formats=("proton",),
    backend="cpu+replay",
    mode="a:b=c",
    interpret=False,
)


def test_options_survive_the_way_through_the_command_line() -> None:
    text = OPTIONS.to_json()

    assert text.isascii()
    assert "\n" not in text
    assert RunOptions.from_json(text) == OPTIONS


def test_the_command_keeps_the_targets_arguments_apart() -> None:
    command = runner_command(OPTIONS, ["-n", "a b", "--"], ["-u"])

    assert command[:2] == [sys.executable, "-u"]
    assert command[3] == OPTIONS.to_json()
    assert command[4:] == ["-n", "a b", "--"]


def test_an_error_is_one_line_and_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code = report_error(BackendUnavailableError("no driver"))

    assert code == 69
    assert capsys.readouterr().err == "proton: error: no driver\n"


def test_debug_adds_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTON_BENCH_DEBUG", "1")

    with pytest.raises(UsageError) as caught:
        raise UsageError("wrong")
    report_error(caught.value)

    error_lines = capsys.readouterr().err.splitlines()
    assert error_lines[0] == "Traceback (most recent call last):"
    assert error_lines[-1] == "proton: error: wrong"

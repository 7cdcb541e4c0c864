from __future__ import annotations

import sys

from proton_bench.recording.launcher.run_options import RunOptions, runner_command
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

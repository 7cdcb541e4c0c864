from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.pytest_plugin.benchmarks.end.judging import replicate_command
from proton_bench.recording.launcher.target import TargetKind


def test_fresh_processes_take_the_same_arguments(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig(
        "-pno:asyncio", "-k", "one or two", "--proton-backend=cpu", "--proton-runs=4", "tests"
    )

    command = replicate_command(config, Path("/store/tests.json"))

    assert command.options.kind is TargetKind.PYTEST
    assert command.options.backend == "cpu"
    assert command.options.folder == str(pytester.path)
    arguments = list(command.arguments)
    assert arguments[arguments.index("-k") + 1] == "one or two"
    assert arguments.index("--proton-replicate=/store/tests.json") > arguments.index("tests")
    # One that is given would be emptied by each of them.
    assert "--basetemp=/store/tmp" in arguments


def test_fresh_processes_have_no_workers(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    config = pytester.parseconfig("-pno:asyncio", "-n2")

    assert {"-n0", "--dist=no"} < set(replicate_command(config, Path("t.json")).arguments)
    without = pytester.parseconfig("-pno:asyncio", "-pno:xdist")
    assert "-n0" not in replicate_command(without, Path("t.json")).arguments


def test_options_stay_options_before_paths_that_follow_two_dashes(
    pytester: pytest.Pytester,
) -> None:
    config = pytester.parseconfig("-pno:asyncio", "-pno:xdist", "--", "tests")

    arguments = replicate_command(config, Path("t.json")).arguments

    assert arguments.index("--proton-replicate=t.json") < arguments.index("--")

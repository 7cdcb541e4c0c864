"""The gate of this project's own hot paths: its targets in CI exist, with options that it knows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from proton_bench.cli.app import build_app
from proton_bench.gate.policy import read_policy

yaml = pytest.importorskip("yaml", reason="the extra test is not installed")

ROOT = Path(__file__).parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "gate.yml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()


def test_the_target_runs_a_module_that_exists_and_is_not_part_of_the_tests() -> None:
    (line,) = re.findall(r"^gate: .*\n\t(.+)$", MAKEFILE, re.MULTILINE)

    module = line.split()[2]
    assert (ROOT / module.replace(".", "/") / "__main__.py").is_file()
    assert "make gate" not in (ROOT / ".ci" / "run").read_text()
    (test,) = re.findall(r"^test: (.*)$", MAKEFILE, re.MULTILINE)
    assert "gate" not in test


def test_the_workflow_s_options_are_those_of_the_gate() -> None:
    steps = WORKFLOW["jobs"]["hot-paths"]["steps"]
    (command,) = [step["run"] for step in steps if "run" in step]
    assert command.startswith("make gate ")
    (options,) = [word for word in shlex.split(command) if word.startswith("GATE=")]
    gate = typer.main.get_command(build_app(["gate"])).commands["gate"]

    words = [*shlex.split(options.removeprefix("GATE=")), "base", "new"]

    assert gate.make_context("gate", words).params["github"] is True


def test_what_a_pull_request_names_reaches_no_shell() -> None:
    text = (ROOT / ".github" / "workflows" / "gate.yml").read_text()

    assert not re.search(r"run:.*\$\{\{", text)


def test_a_shared_machine_passes_what_it_cannot_decide() -> None:
    policy = read_policy(ROOT / "benchmarks" / "hot_paths" / "policy.toml")

    assert policy.inconclusive_passes
    assert [str(each) for each in policy.thresholds] == ["hot paths/*@min:10%"]

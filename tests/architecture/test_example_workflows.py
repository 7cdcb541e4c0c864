"""Workflows of the documents: they parse, ask for little, and call commands that exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from proton_bench.cli.app import COMMANDS, build_app, route
from proton_bench.report.text.gate import MARK

yaml = pytest.importorskip("yaml", reason="the extra test is not installed")

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("how-to/gate.md", "how-to/gate_on_github.md", "tutorials/first_gate.md")
PAGE = "\n".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
WORKFLOWS = {
    found["name"]: found
    for found in (yaml.safe_load(text) for language, text in BLOCKS if language == "yaml")
}
STEPS = [
    (f"{name}.{at}", step)
    for name, workflow in WORKFLOWS.items()
    for job in workflow["jobs"].values()
    for at, step in enumerate(job["steps"])
]
SCRIPTS = [(name, step["run"]) for name, step in STEPS if "run" in step]
SHELL = [text for language, text in BLOCKS if not language and text.startswith("proton")]
CALL = re.compile(r"(?:^ *|\(|\) |&& |; |do )proton ((?:'[^']*'|[^'\n;&|()])*)", re.MULTILINE)


def calls() -> list[list[str]]:
    """Return the words of every call of proton in the workflows and examples of the page."""
    texts = [*(script for _, script in SCRIPTS), *SHELL]
    found = [words for text in texts for words in CALL.findall(text.replace("\\\n", " "))]
    return [shlex.split(words, comments=True) for words in found]


def test_there_are_workflows_and_calls() -> None:
    assert set(WORKFLOWS) == {"perf-gate", "perf-comment", "perf-baseline", "speed"}
    assert {"gate", "baseline", "doctor", "-o", "ab", "view"} <= {words[0] for words in calls()}


@pytest.mark.parametrize("words", calls(), ids=" ".join)
def test_every_call_is_of_a_command_with_its_options(words: list[str]) -> None:
    name, *rest = route(words, COMMANDS)
    command = typer.main.get_command(build_app([name])).commands[name]

    # Raises for an unknown option, a missing argument or a value of another type.
    context = command.make_context(name, rest)

    if hasattr(command, "commands"):
        inner, *left = rest
        assert command.commands[inner].make_context(inner, left, parent=context) is not None


@pytest.mark.parametrize(("name", "script"), SCRIPTS)
def test_every_script_is_one(name: str, script: str) -> None:
    done = subprocess.run(["bash", "-n", "-c", script], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, ""), name


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_ask_for_little(name: str) -> None:
    workflow: dict[Any, Any] = WORKFLOWS[name]
    writes = {key for key, right in workflow["permissions"].items() if right == "write"}

    # YAML 1.1 reads the key `on` as true.
    assert "pull_request_target" not in str(workflow[True])
    assert writes == ({"pull-requests"} if name == "perf-comment" else set())
    assert all(0 < job["timeout-minutes"] <= 60 for job in workflow["jobs"].values())
    # A job that may write checks nothing out and runs nothing.
    uses = [step.get("uses", "") for job in workflow["jobs"].values() for step in job["steps"]]
    assert not writes or not any("checkout" in each or not each for each in uses)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_code_of_forks_runs_on_own_machines(name: str) -> None:
    workflow: dict[Any, Any] = WORKFLOWS[name]
    own = "github.event.pull_request.head.repo.full_name == github.repository"
    if "pull_request" not in workflow[True]:
        return
    for job in workflow["jobs"].values():
        assert "self-hosted" not in job["runs-on"] or job.get("if") == own


@pytest.mark.parametrize(
    ("name", "action"), [(name, step["uses"]) for name, step in STEPS if "uses" in step]
)
def test_actions_are_github_s_own_at_a_commit(name: str, action: str) -> None:
    assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action), name


def test_every_pinned_action_names_its_version() -> None:
    workflows = (Path(__file__).parents[2] / ".github" / "workflows").glob("*.yml")
    for text in (PAGE, *(each.read_text(encoding="utf-8") for each in workflows)):
        for line in re.findall(r"^.*\buses: .*$", text, re.MULTILINE):
            assert re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_the_comment_trusts_the_event_and_not_the_artifact() -> None:
    text = yaml.dump(WORKFLOWS["perf-comment"])

    assert "number.txt" not in PAGE
    assert "workflow_run.head_sha" in text or "run.head_sha" in text


def test_docs_install_from_the_repository() -> None:
    docs = Path(__file__).parents[2]
    for page in (docs / "README.md", *(docs / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"pip install '?\"?proton-bench(?! @ git)", text), page


def test_the_comment_is_found_by_its_mark() -> None:
    assert f"startsWith('{MARK}')" in yaml.dump(WORKFLOWS["perf-comment"], width=10_000).replace(
        "''", "'"
    )


def recorded(tmp_path: Path, script: str, **codes: int) -> tuple[int, list[str]]:
    """Run a script with a proton that notes its arguments and exits with the given codes."""
    (tmp_path / "bin").mkdir()
    log = tmp_path / "calls"
    cases = "".join(f"{word}) exit {code};; " for word, code in codes.items())
    fake = tmp_path / "bin" / "proton"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(log))}\ncase "$1" in {cases} esac\n')
    fake.chmod(0o755)
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    return done.returncode, log.read_text().splitlines()


@pytest.mark.parametrize(
    ("verdict", "code", "promotes"), [(0, 0, True), (5, 0, True), (1, 1, False), (3, 3, False)]
)
def test_a_baseline_is_promoted_if_it_is_no_slower_or_the_first(
    tmp_path: Path, verdict: int, code: int, promotes: bool
) -> None:
    (script,) = [text for _, text in SCRIPTS if "promote" in text]

    found, lines = recorded(tmp_path, script, gate=verdict)

    assert found == code
    assert ("baseline promote main" in lines) == promotes

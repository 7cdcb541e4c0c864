"""The workflows ask for little, run what exists here, and cover what pyproject.toml promises."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="the extra test is not installed")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.yml")
}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTHONS = [
    found[1]
    for line in PYPROJECT["project"]["classifiers"]
    if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
]
TARGETS = set(
    re.findall(
        r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
)
# A file of ours that a command names: .ci/check_wheel.py, ../constraints.txt
OWN_FILE = re.compile(r"(?<![\w/$*.-])((?:\.\./)?(?:\.?[a-z_]+/)*[\w.-]+\.(?:py|txt|toml))\b")


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (workflow and job, its settings)."""
    for workflow, settings in WORKFLOWS.items():
        for name, job in settings["jobs"].items():
            yield f"{workflow}.{name}", job


JOBS = dict(jobs())


def steps(key: str) -> list[tuple[str, str]]:
    """Return (job, value) of every step that has ``key``: ``run`` or ``uses``."""
    return [(name, step[key]) for name, job in JOBS.items() for step in job["steps"] if key in step]


def test_the_workflows_are_here() -> None:
    assert set(WORKFLOWS) == {"tests", "lint", "wheels", "gate"}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_the_sources_and_nothing_else(name: str) -> None:
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    # YAML 1.1 reads the key `on` as true.
    assert "pull_request_target" not in WORKFLOWS[name][True]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_has_an_end_and_no_rights_of_its_own(name: str) -> None:
    job = JOBS[name]

    assert 0 < job["timeout-minutes"] <= 60
    assert "permissions" not in job
    checkouts = [step for step in job["steps"] if "checkout" in step.get("uses", "")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False]


@pytest.mark.parametrize(("name", "action"), steps("uses"))
def test_actions_are_github_s_own_at_a_commit(name: str, action: str) -> None:
    assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action), name


def test_every_make_target_that_is_run_exists() -> None:
    used = [found for _, text in steps("run") for found in re.findall(r"\bmake ([a-z0-9-]+)", text)]

    assert {"test", "lint", "docs", "matrix", "gate"} <= set(used) <= TARGETS


@pytest.mark.parametrize(("name", "command"), steps("run"))
def test_every_file_that_is_named_exists(name: str, command: str) -> None:
    folder = ROOT / JOBS[name].get("defaults", {}).get("run", {}).get("working-directory", "")

    assert [file for file in OWN_FILE.findall(command) if not (folder / file).exists()] == []


def test_tests_run_on_every_python_of_the_package() -> None:
    # torch has no wheel for 3.15, whose row of the matrix runs without it.
    assert JOBS["tests.tests"]["strategy"]["matrix"]["python"] == PYTHONS[:-1]
    rows = JOBS["tests.versions"]["strategy"]["matrix"]["include"]
    assert {row["python"] for row in rows} >= {PYTHONS[-1]}


def test_sanitizers_are_presets_of_the_native_build() -> None:
    presets = (ROOT / "native" / "CMakePresets.json").read_text(encoding="utf-8")

    matrix = JOBS["tests.sanitizers"]["strategy"]["matrix"]["preset"]
    assert matrix == ["asan", "tsan"]
    assert all(f'"name": "{preset}"' in presets for preset in matrix)


def test_wheels_are_built_for_every_python_of_the_package_and_tested() -> None:
    wheels = PYPROJECT["tool"]["cibuildwheel"]
    command = wheels["test-command"].split()

    assert wheels["build"] == [f"cp{version.replace('.', '')}-*" for version in PYTHONS]
    assert Path(command[-1].replace("{project}", str(ROOT))).is_file()


def test_every_page_of_a_cache_key_exists() -> None:
    named = re.findall(
        r"cache-dependency-path: (\S+)",
        "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yml")),
    )

    assert named
    assert [file for file in named if not (ROOT / file).exists()] == []

"""The steady step of recorded programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from published import published

from proton_bench.formats.registry import read_profile, read_steps
from proton_bench.model.profile import Profile
from proton_bench.model.steps import Steps

pytest.importorskip("proton_bench._native")

SCOPES = """
import proton_bench as proton
with proton.scope("warm up"):
    sum(range(3_000_000))
for i in range({count}):
    with proton.scope(f"step {{i}}"):
        with proton.scope("work", metrics={{"items": 7}}):
            pass
    {mark}
with proton.scope("save"):
    pass
"""
TRAINING = """
import torch
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters())
for i in range(12):
    optimizer.zero_grad()
    net(torch.zeros(2, 4)).sum().backward()
    optimizer.step()
"""
ADVERSARIES = """
import torch
nets = [torch.nn.Linear(4, 4) for _ in range(2)]
optimizers = [torch.optim.SGD(net.parameters()) for net in nets]
for i in range(12):
    for net, optimizer in zip(nets, optimizers):
        optimizer.zero_grad()
        net(torch.zeros(2, 4)).sum().backward()
        optimizer.step()
"""
INFERENCE = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
for i in range(14):
    net(torch.zeros(2, 4))
"""


def recorded(folder: Path, code: str, name: str = "run", *words: str) -> Path:
    (folder / "program.py").write_text(code)
    command = [sys.executable, "-m", "proton_bench", "run", "-b", "cpu", "-n", name, *words]
    done = subprocess.run(
        [*command, "program.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / f"{name}.proton"


def proton(*words: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "proton_bench", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout


def step_of(file: Path) -> tuple[Profile, Steps]:
    (profile,) = read_steps([file])
    steps = Steps.of(profile.provenance)
    assert steps is not None
    return profile, steps


def paths(profile: Profile) -> set[str]:
    return {"/".join(profile.path(row)) for row in range(1, len(profile))}


def test_repeated_scopes_are_steps_without_what_came_before_and_after(tmp_path: Path) -> None:
    profile, steps = step_of(recorded(tmp_path, SCOPES.format(count=12, mark="")))

    assert (steps.name, steps.first, steps.count, steps.begun) == ("step *", 6, 4, 12)
    assert profile.inclusive("items")[0] == 7
    assert not any("warm up" in path or "save" in path for path in paths(profile))
    assert steps.before_ns > steps.median_ns


def test_a_program_can_say_where_its_steps_end(tmp_path: Path) -> None:
    code = SCOPES.format(count=24, mark="if i % 2: proton.step()")

    profile, steps = step_of(recorded(tmp_path, code))

    assert (steps.by, steps.count, steps.begun) == ("declared", 4, 12)
    assert profile.inclusive("items")[0] == 14


@pytest.mark.parametrize(
    ("code", "by", "name", "count"),
    [(TRAINING, "optimizer", "SGD", 12), (INFERENCE, "layer", "Sequential", 14)],
)
def test_torch_programs_show_their_steps(
    tmp_path: Path, code: str, by: str, name: str, count: int
) -> None:
    profile, steps = step_of(recorded(tmp_path, code))

    assert (steps.by, steps.name, steps.count, steps.begun) == (by, name, 4, count)
    calls = profile.column("count").to_list()
    linear = [calls[row] for row in range(len(profile)) if profile.name(row) == "aten::addmm"]
    assert linear == [1]


def test_of_several_optimizers_one_shows_the_steps(tmp_path: Path) -> None:
    assert step_of(recorded(tmp_path, ADVERSARIES))[1].begun == 12


def test_steps_are_those_after_the_last_pause(tmp_path: Path) -> None:
    mark = "if i == 7: proton.deactivate(0); proton.activate(0)"

    _, steps = step_of(recorded(tmp_path, SCOPES.format(count=12, mark=mark)))

    assert (steps.first, steps.count, steps.begun) == (10, 2, 12)


@pytest.mark.parametrize("count", [3, 4])
def test_too_few_steps_are_a_run(tmp_path: Path, count: int) -> None:
    (profile,) = read_steps([recorded(tmp_path, SCOPES.format(count=count, mark=""))])

    assert Steps.of(profile.provenance) is None


def test_commands_show_the_step_and_with_whole_the_run(tmp_path: Path) -> None:
    file = recorded(tmp_path, SCOPES.format(count=12, mark=""))

    documents: dict[tuple[str, bool], Any] = {
        (command, whole): published(
            proton(command, str(file), "--json", *(["--whole"] * whole), cwd=tmp_path)
        )
        for command in ("view", "why")
        for whole in (False, True)
    }

    for command in ("view", "why"):
        assert documents[command, False]["steps"]["count"] == 4
        assert documents[command, True]["steps"] is None
    assert "mean of steps 6 to 9 of 12 (scope step *)" in proton("view", str(file), cwd=tmp_path)


def test_differences_are_those_of_steps_whatever_their_numbers(tmp_path: Path) -> None:
    few = recorded(tmp_path, SCOPES.format(count=12, mark=""), "few")
    many = recorded(tmp_path, SCOPES.format(count=30, mark=""), "many")
    words = ["diff", str(few), str(many), "-m", "items", "--json"]

    documents = [published(proton(*words, *rest, cwd=tmp_path)) for rest in ([], ["--whole"])]

    roots = [document["rows"][0]["inclusive"] for document in documents]
    assert [(root["base"], root["new"]) for root in roots] == [(7, 7), (84, 210)]
    steps = [[document[side][0]["steps"] for side in ("base", "new")] for document in documents]
    assert [[each and each["count"] for each in sides] for sides in steps] == [[4, 8], [None] * 2]


def test_tests_have_no_steps(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import proton_bench as proton\n"
        "def test_it():\n"
        "    for i in range(12):\n"
        "        with proton.scope('step'): pass\n"
    )
    command = [sys.executable, "-m", "proton_bench", "-b", "cpu", "-n", "run", "pytest", "-q", "."]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)

    (profile,) = read_steps([tmp_path / "run.proton"])

    assert Steps.of(profile.provenance) is None


def test_a_window_of_steps_has_their_operators_and_their_numbers(tmp_path: Path) -> None:
    file = recorded(tmp_path, TRAINING, "run", "--steps", "4:10")

    profile = read_profile(file)
    calls = profile.column("count").to_list()
    names = [profile.name(row) for row in range(len(profile))]
    assert sum(calls[row] for row in range(len(profile)) if names[row] == "aten::addmm") == 6
    _, steps = step_of(file)
    assert (steps.by, steps.count, steps.begun) == ("optimizer", 2, 12)
    assert 5 <= steps.first <= 9

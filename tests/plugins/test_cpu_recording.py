from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proton_bench.formats.registry import read_profile
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

pytest.importorskip("proton_bench._native")
pytest.importorskip("torch")
pytest.importorskip("triton")

PROGRAM = Path(__file__).with_name("interpreted_program.py")
METADATA = "__proton_launch_metadata"
TRIALS = 2 * 4  # two configurations, one warm-up and three timed launches each

Path_ = tuple[str, ...]


@dataclass(frozen=True)
class Recorded:
    """A profile and its rows by path, variants summed."""

    profile: Profile
    folded: Profile

    @classmethod
    def read(cls, path: Path) -> Recorded:
        """Read a file."""
        profile = read_profile(path)
        return cls(profile, profile.fold_variants())

    def row(self, *path: str) -> int:
        """Return the row of a path; raises where there is none."""
        return next(row for row in range(len(self.folded)) if self.folded.path(row) == path)

    def value(self, metric: str, *path: str) -> Any:
        """Return a path's own value of a metric, summed where several rows have it."""
        rows = [row for row in range(len(self.folded)) if self.folded.path(row) == path]
        values = [self.folded.column(metric).get(row) for row in rows]
        return next((value for value in values if value is not None), None)

    def below(self, *path: str) -> set[Path_]:
        """Return the paths below a path, relative to it."""
        row = self.row(*path)
        rows = range(row + 1, int(self.folded.subtree_end[row]))
        return {self.folded.path(each)[len(path) :] for each in rows}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the two profiles of the program and what it printed."""
    folder = tmp_path_factory.mktemp("cpu")
    settings = {"CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "1", "PROTON_BENCH_NATIVE": "1"}
    result = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder)],
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    (folder / "facts.json").write_text(result.stdout)
    return folder


@pytest.fixture(scope="module")
def facts(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "facts.json").read_text())
    return found


@pytest.fixture(scope="module")
def recorded(folder: Path) -> Recorded:
    return Recorded.read(folder / "plain.proton")


@pytest.fixture(scope="module")
def hooked(folder: Path) -> Recorded:
    return Recorded.read(folder / "hooked.proton")


def test_every_launch_is_a_kernel_node_with_time_and_count(
    recorded: Recorded, facts: dict[str, Any]
) -> None:
    kernel = recorded.row("plain", "add_one")

    assert recorded.folded.kind(kernel) is FrameKind.KERNEL
    assert recorded.value("count", "plain", "add_one") == 3
    assert recorded.value("time (ns)", "plain", "add_one") > 0
    assert recorded.folded.device(kernel).kind == "CPU"
    assert facts["plain"] == [3.0, 3.0]


def test_argument_copies_of_the_interpreter_are_not_recorded(recorded: Recorded) -> None:
    assert recorded.below("plain") == {("add_one",)}


def test_a_kernel_loops_to_a_bound_of_run_time(recorded: Recorded, facts: dict[str, Any]) -> None:
    assert recorded.value("count", "looped", "add_rows") == 1
    assert facts["looped"] == [1.0] * 20


def test_launches_with_other_grids_are_variants(recorded: Recorded) -> None:
    profile = recorded.profile
    rows = [row for row in range(len(profile)) if profile.path(row) == ("variants", "add_one")]

    variants = [profile.variant(row) for row in rows]

    assert {variant.grid for variant in variants} == {(5, 1, 1), (2, 1, 1)}
    assert len({variant.code_hash for variant in variants}) == 1
    assert {variant.signature for variant in variants} == {
        "x:*float32, n:i32, BLOCK=4",
        "x:*float32, n:i32, BLOCK=16",
    }


def test_launch_metadata_names_the_launch_and_becomes_metrics(
    hooked: Recorded, facts: dict[str, Any]
) -> None:
    kernel = ("described", "double_20")

    assert hooked.value("flops32", *kernel) == 20.0
    assert hooked.value("bytes", *kernel) == 160
    assert hooked.value("count", *kernel) == 1
    assert hooked.value("time (ns)", *kernel) > 0
    assert facts["metadata"] == [[5], "double", 8, 4]


def test_a_kernel_without_metadata_keeps_its_name_under_the_hook(hooked: Recorded) -> None:
    assert hooked.below("undescribed") == {("add_one",)}


def test_operators_of_launch_metadata_stand_apart(hooked: Recorded) -> None:
    below = hooked.below("described")

    assert (METADATA, "double", "aten::sum") in below
    assert ("aten::sum",) not in below


def test_trials_of_the_autotuner_stand_below_their_state(recorded: Recorded) -> None:
    times = recorded.folded.inclusive("count")
    trials = recorded.row("tuned", "<autotune>")

    kernels = [path for path in recorded.below("tuned") if path[-1] == "tuned"]
    assert ("<autotune>", "tuned") in kernels
    assert recorded.value("count", "tuned", "<autotune>", "tuned") == TRIALS
    assert recorded.folded.kind(trials) is FrameKind.STATE
    assert times[trials] >= TRIALS
    assert recorded.value("count", "tuned", "tuned") == 1


def test_do_bench_works_without_a_gpu(recorded: Recorded, facts: dict[str, Any]) -> None:
    assert facts["do_bench"] > 0
    assert recorded.value("count", "benchmarked", "add_one") >= 7


def test_a_kernel_that_raises_is_counted_and_closed(
    recorded: Recorded, facts: dict[str, Any]
) -> None:
    assert facts["broken"] == "InterpreterError"
    assert recorded.value("count", "broken", "broken") == 1
    assert recorded.value("count", "after_broken", "add_one") == 1


def test_kernels_of_backward_stand_below_its_scope(recorded: Recorded) -> None:
    below = recorded.below("backward")

    assert any(path[-1] == "add_one" for path in below)


def test_operators_are_recorded_two_deep(recorded: Recorded) -> None:
    below = recorded.below("operators")

    assert ("aten::linear",) in below
    assert ("aten::softmax", "aten::_softmax") in below
    assert max(len(path) for path in below) == 2


def test_time_of_an_operator_is_its_own(recorded: Recorded) -> None:
    row = recorded.row("operators", "aten::softmax")
    own = recorded.value("time (ns)", "operators", "aten::softmax")
    nested = recorded.value("time (ns)", "operators", "aten::softmax", "aten::_softmax")

    assert recorded.folded.inclusive("time (ns)")[row] == own + nested


def test_scopes_carry_wall_time_and_no_time_of_their_own(recorded: Recorded) -> None:
    assert recorded.value("wall (ns)", "plain") > 0
    assert recorded.value("time (ns)", "plain") is None


def test_nothing_is_recorded_while_the_session_is_inactive(recorded: Recorded) -> None:
    names = {recorded.folded.name(row) for row in range(len(recorded.folded))}

    assert "inactive" not in names


def test_triton_is_left_as_it_was_found_but_for_the_driver(
    recorded: Recorded, facts: dict[str, Any]
) -> None:
    assert facts["restored"]
    assert facts["trials_restored"]
    assert (facts["target"], facts["device"]) == ("cpu", "cpu")

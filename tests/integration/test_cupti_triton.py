"""Launches of Triton on the double of libcupti: names, metrics, metadata kernels and trials."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

pytest.importorskip("triton")

__all__ = ["cupti_doubles"]

PROGRAMS = Path(__file__).with_name("cupti_triton_programs.py")
METADATA = "__proton_launch_metadata"


class Recorded:
    """A profile by call paths, and what its program wrote on stderr."""

    def __init__(self, path: Path, errors: str) -> None:
        self.profile = read_profile(path)
        self.folded: Profile = self.profile.fold_variants()
        self.errors = errors
        self.rows = {self.folded.path(row): row for row in range(len(self.folded))}

    def value(self, metric: str, *path: str) -> float:
        """Return a metric of the row at a path."""
        column = self.folded.columns[metric]
        row = self.rows[path]
        assert column.valid[row], f"{path} has no {metric}"
        value: float = column.values[row].item()
        return value

    def counted(self) -> dict[tuple[str, ...], float]:
        """Return the number of launches by path."""
        valid = self.folded.columns["count"].valid
        return {path: self.value("count", *path) for path, row in self.rows.items() if valid[row]}


@pytest.fixture(scope="module")
def recorded(
    cupti_doubles: Doubles, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Recorded]:
    """Run all programs in one process, each in a session, and return the recordings by program."""
    folder = tmp_path_factory.mktemp("programs")
    environment = cupti_doubles.environment(PROTON_BENCH_NATIVE="1")
    command = [sys.executable, str(PROGRAMS), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path.stem: Recorded(path, done.stderr) for path in folder.glob("*.proton")}


def test_metadata_renames_the_kernel_and_keeps_its_raw_name(
    recorded: dict[str, Recorded],
) -> None:
    found = recorded["renamed"]

    assert found.counted() == {("layer", "mm_0"): 2, ("layer", "softmax_kernel"): 1}
    assert found.value("flops32", "layer", "mm_0") == 16.0
    assert found.value("bytes", "layer", "mm_0") == 8
    assert found.value("extra", "layer", "mm_0") == 4
    variants = {
        found.profile.name(row): found.profile.variant(row) for row in range(len(found.profile))
    }
    assert variants["mm_0"].raw_name == "mm_kernel"
    assert variants["softmax_kernel"].raw_name == ""


def test_without_the_hook_kernels_keep_the_names_of_the_device(
    recorded: dict[str, Recorded],
) -> None:
    found = recorded["unhooked"]

    assert found.counted() == {("layer", "mm_kernel"): 1, ("layer", "softmax_kernel"): 1}
    assert "flops32" not in found.folded.columns


def test_kernels_of_the_metadata_stand_apart_and_are_not_hooked(
    recorded: dict[str, Recorded],
) -> None:
    found = recorded["nested"]

    assert found.counted() == {
        ("layer", METADATA, "mm_kernel", "reduce_kernel"): 1,
        ("layer", METADATA, "mm_kernel", "torch_sum"): 1,
        ("layer", "mm_kernel"): 1,
    }
    assert found.value("n", "layer", "mm_kernel") == 1


def test_kernels_of_the_metadata_stand_apart_below_python_frames(
    recorded: dict[str, Recorded],
) -> None:
    found = recorded["nested_python"]

    leaves = {path[-1]: path for path in found.counted()}
    assert leaves["reduce_kernel"][-3:-1] == (METADATA, "mm_kernel")
    assert leaves["torch_sum"][-3:-1] == (METADATA, "mm_kernel")
    assert METADATA not in leaves["mm_kernel"]
    assert any("@launch" in frame for frame in leaves["mm_kernel"])


def test_metrics_stand_on_the_kernels_own_node_below_python_frames(
    recorded: dict[str, Recorded],
) -> None:
    found = recorded["described_python"]

    [path] = found.counted()
    assert path[-1] == "mm_0"
    assert found.value("flops32", *path) == 8.0


def test_failing_metadata_is_said_once_and_the_hook_lives_on(
    recorded: dict[str, Recorded],
) -> None:
    found = recorded["failing"]

    assert found.counted() == {("mm_kernel",): 6}
    assert found.value("n", "mm_kernel") == 3
    assert found.errors.count("no launch metadata of kernel 'mm_kernel'") == 1
    assert found.profile.dropped == {"launch metadata": 3}


def test_threads_do_not_mix_their_launches(recorded: dict[str, Recorded]) -> None:
    found = recorded["threads"]

    assert found.counted() == {(f"kernel_{number}",): 100 for number in range(200)}
    assert {found.value("n", *path) for path in found.counted()} == {100}


def test_hooks_of_the_target_hear_every_launch(recorded: dict[str, Recorded]) -> None:
    found = recorded["third_party"]

    assert found.counted() == {("mm_0",): 1}


def test_trials_of_the_autotuner_stand_below_their_state(
    recorded: dict[str, Recorded],
) -> None:
    found = recorded["tuned"]

    assert found.counted() == {
        ("layer", "<autotune>", "tuned_kernel"): 4,
        ("layer", "tuned_kernel"): 2,
    }

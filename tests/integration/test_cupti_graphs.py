"""CUDA graphs on the double of libcupti: metrics, sessions, phases, windows."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

from proton_bench.formats.registry import read_profile

__all__ = ["cupti_doubles"]

PROGRAMS = Path(__file__).with_name("cupti_graph_programs.py")
AT = "<captured_at>"
Values = dict[tuple[str, ...], float | tuple[float, ...] | None]


class Recorded:
    """A program's profiles, and what it wrote on stderr."""

    def __init__(self, path: Path, errors: str) -> None:
        self.path = path
        self.errors = errors

    def values(self, metric: str, suffix: str = "") -> Values:
        """Return a metric by call path."""
        profile = read_profile(Path(f"{self.path}{suffix}.proton")).fold_variants()
        column = profile.columns.get(metric)
        if column is None:
            return {}
        return {
            profile.path(row): column.get(row) for row in range(len(profile)) if column.valid[row]
        }

    def paths(self) -> set[tuple[str, ...]]:
        """Return every call path."""
        profile = read_profile(Path(f"{self.path}.proton")).fold_variants()
        return {profile.path(row) for row in range(len(profile))}


class Record(Protocol):
    """Runs a program."""

    def __call__(self, name: str, number: int = 0) -> Recorded:
        """Return the recording."""


@pytest.fixture
def record(cupti_doubles: Doubles, tmp_path: Path) -> Record:
    """Run a program and return its recording."""

    def run(name: str, number: int = 0) -> Recorded:
        output = tmp_path / f"{name}_{number}"
        environment = cupti_doubles.environment(PROTON_BENCH_NATIVE="1")
        command = [sys.executable, str(PROGRAMS), name, str(output)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return Recorded(output, done.stderr)

    return run


def test_tensors_under_capture_are_read_at_each_replay(
    record: Record,
) -> None:
    found = record("left_by_devices")

    assert found.values("flops") == {
        ("first", AT, "given"): 101.0,
        ("second", AT, "given"): 10.0,
    }
    assert found.values("vec") == {
        ("first", AT, "given"): (2, 4),
        ("second", AT, "given"): (1, 2),
    }
    assert found.values("bytes") == {("first", AT, "given"): 8, ("second", AT, "given"): 4}
    assert found.values("total") == {("first", AT, "mm"): 16.0, ("second", AT, "mm"): 8.0}
    assert found.values("flops32")["first", AT, "mm"] == 16.0
    assert "metric 'matrix' is a tensor of shape" in found.errors


def test_numbers_of_a_captured_scope_count_at_each_replay(
    record: Record,
) -> None:
    found = record("metrics")

    assert found.values("flops") == {
        ("plain",): 7.0,
        ("replay", AT, "given"): 10.0,
        ("replay", AT, "entered"): 5.0,
    }
    assert found.values("bytes") == {
        ("replay", AT, "given"): 15,
        ("replay", AT, "entered"): 5,
    }
    assert ("given",) not in found.values("count")
    assert found.errors == ""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_metadata_of_a_captured_launch_counts_at_each_replay(
    record: Record,
) -> None:
    found = record("hooked")

    assert found.values("count") == {("replay", AT, "layer", "mm_8"): 3}
    assert found.values("flops32") == {("replay", AT, "layer", "mm_8"): 24.0}


def test_sessions_see_their_own_captures(record: Record) -> None:
    found = record("two_sessions")

    assert found.values("flops") == {("replay first", AT, "first"): 2.0}
    assert found.values("flops", "_second") == {("replay second", AT, "second"): 3.0}
    assert found.values("count") == {
        ("replay first", AT, "first", "first kernel"): 1,
        ("replay second", AT, "second kernel"): 1,
    }
    assert found.values("count", "_second") == {
        ("replay first", AT, "first kernel"): 1,
        ("replay second", AT, "second", "second kernel"): 1,
    }


def test_scopes_without_a_kernel_are_not_in_a_replay(record: Record) -> None:
    found = record("empty_scopes")

    assert found.values("count") == {("replay", AT, "work", "kernel"): 1}
    assert not any("idle" in path and AT in path for path in found.paths())


def test_graphs_survive_the_phase_of_their_capture(record: Record) -> None:
    found = record("phases")

    for number in range(1, 5):
        assert found.values("count", f".part_{number}") == {
            ("replay", AT, "captured", "kernel"): number
        }
        assert found.values("flops", f".part_{number}") == {
            ("replay", AT, "captured"): 2.0 * number
        }


def test_graphs_survive_pauses(record: Record) -> None:
    found = record("pauses")

    assert found.values("count") == {("replay", AT, "captured", "kernel"): 3}
    assert found.values("flops") == {("replay", AT, "captured"): 6.0}
    assert not any("unseen" in path for path in found.paths())
    assert found.errors == ""


def test_a_flush_under_capture_leaves_the_capture_alone(record: Record) -> None:
    found = record("flushed")

    assert found.values("count") == {
        ("replay", AT, "seen", "kernel"): 2,
        ("replay", AT, "kernel"): 2,
    }


def test_one_entry_per_launch_is_a_mode(record: Record) -> None:
    found = record("by_launch")

    assert found.values("count") == {("replay", "<graph>"): 5, ("plain", "kernel"): 1}
    assert found.values("time (ns)")["replay", "<graph>"] > 0
    assert found.values("flops") == {("replay", AT, "captured"): 10.0}


def test_a_profile_does_not_grow_with_replays(record: Record) -> None:
    few, many = record("many_replays", 100), record("many_replays", 3000)

    assert few.paths() == many.paths()
    assert many.values("count") == {("replay", AT, "captured", "kernel"): 3000}
    sizes = [Path(f"{found.path}.proton").stat().st_size for found in (few, many)]
    assert sizes[1] < sizes[0] + 400  # the provenance and larger numbers


def test_kernels_stand_below_the_python_frames_of_their_capture(
    record: Record,
) -> None:
    found = record("python_frames")

    [path] = found.values("count")
    above, below = path[: path.index(AT)], path[path.index(AT) + 1 :]
    assert any("@replay" in frame for frame in above)
    assert any("@layer" in frame for frame in below)
    assert path[-1] == "kernel"

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.recordings import write_recording

from proton_bench import _native
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile
from proton_bench.recording.models.torch_probe import LIBRARY
from proton_bench.recording.models.torch_verdict import VERSION, verdict_file

torch = pytest.importorskip("torch")

PROGRAM = Path(__file__).with_name("operator_program.py")
MARKED_BAD = "no reason but a test"
EVALUATION = "autograd::engine::evaluate_function: "

Path_ = tuple[str, ...]


class Recorded:
    """Counts of a profile's rows by path, and what the program printed."""

    def __init__(self, profile: Profile, errors: str) -> None:
        self.errors = errors
        self.dropped = dict(profile.dropped)
        column = profile.column("count")
        self.counts = {profile.path(row): column.get(row) for row in range(len(profile))}

    def below(self, *path: str) -> set[Path_]:
        """Return the paths below a path, relative to it."""
        size = len(path)
        return {each[size:] for each in self.counts if each[:size] == path and len(each) > size}


def run(folder: Path, cache: Path, *mode: str) -> Recorded:
    """Run the program with the cache folder and read its profile."""
    settings = {"XDG_CACHE_HOME": str(cache), "PROTON_BENCH_NATIVE": "1"}
    result = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), *mode],
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return Recorded(read_profile(folder / "operators.proton"), result.stderr)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def native(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The program under the native observer, probed for it."""
    return run(tmp_path_factory.mktemp("native"), cache)


@pytest.fixture(scope="module")
def fallback(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The program with a cached verdict against the native observer."""
    cache = tmp_path_factory.mktemp("bad")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        file = verdict_file(_native.loaded_build_id(LIBRARY))
    file.parent.mkdir(parents=True)
    verdict = {"reason": MARKED_BAD, "reads_scope": True, "node_offset": 0, "fwd_thread_offset": 0}
    verdict["inputs"] = None
    file.write_text(json.dumps({"version": VERSION, **verdict}))
    return run(tmp_path_factory.mktemp("fallback"), cache)


@pytest.fixture(params=["native", "fallback"])
def recorded(request: pytest.FixtureRequest) -> Recorded:
    each: Recorded = request.getfixturevalue(request.param)
    return each


def test_this_torch_is_observed_natively_and_its_verdict_kept(
    native: Recorded, cache: Path
) -> None:
    (file,) = (path for path in cache.rglob("*") if path.is_file())

    assert file.name.startswith(_native.loaded_build_id(LIBRARY))
    assert json.loads(file.read_text())["reason"] == ""
    assert native.errors == ""


def test_a_fallback_is_reported_in_one_line(fallback: Recorded) -> None:
    notes = [line for line in fallback.errors.splitlines() if line.startswith("proton:")]

    assert len(notes) == 1
    assert "torch.profiler" in notes[0]
    assert MARKED_BAD in notes[0]


def test_nothing_is_lost(recorded: Recorded) -> None:
    assert recorded.dropped == {}


def test_torch_imported_in_a_scope_is_seen_in_it(recorded: Recorded) -> None:
    assert recorded.counts["before torch", "aten::ones"] == 1


def test_operators_are_recorded_below_their_scopes_two_deep(recorded: Recorded) -> None:
    below = recorded.below("step 0", "forward")

    assert ("aten::linear", "aten::addmm") in below
    assert max(len(path) for path in below) == 2
    assert "closed" not in {path[0] for path in recorded.counts if path[1:]}
    assert recorded.counts["aten::zeros",] == 1


@pytest.mark.parametrize("step", ["step 0", "step 1"])
def test_every_backward_stands_below_the_scope_that_called_it(
    recorded: Recorded, step: str
) -> None:
    node = (f"{EVALUATION}AddmmBackward0", "AddmmBackward0")

    assert recorded.counts[step, "backward", *node] == 1
    assert recorded.counts[step, "backward", *node, "aten::mm"] == 1
    assert not any(path[0].startswith(EVALUATION) for path in recorded.counts if path)


def test_ranges_of_the_program_are_recorded(recorded: Recorded) -> None:
    assert recorded.counts["ranges", "named"] == 1
    assert recorded.counts["ranges", "named", "aten::ones"] == 1
    assert recorded.counts["ranges", "handed over", "aten::ones"] == 1


def test_a_range_that_ends_on_another_thread_is_neither_lost_nor_misplaced(
    native: Recorded,
) -> None:
    assert native.counts["ranges", "handed over"] == 1
    assert native.counts["ranges", "aten::zeros"] == 1  # after its end
    assert native.counts["ends after its thread",] == 1


def test_operators_of_several_threads_stand_in_the_scopes_of_their_threads(
    native: Recorded,
) -> None:
    counts = [native.counts[f"thread {number}", "aten::ones"] for number in range(3)]

    assert counts == [50, 50, 50]


@pytest.mark.parametrize(("depth", "deepest"), [(1, 1), (3, 3)])
def test_the_mode_limits_the_depth(cache: Path, tmp_path: Path, depth: int, deepest: int) -> None:
    recorded = run(tmp_path, cache, f"cpu:depth={depth}")

    assert max(len(path) for path in recorded.below("thread 0")) == min(deepest, 2)
    assert max(len(path) for path in recorded.below("step 0", "forward")) == deepest


def test_operators_are_recorded_beside_another_backend(tmp_path: Path, cache: Path) -> None:
    write_recording(tmp_path / "empty")
    program = (
        "import torch, proton_bench as proton\n"
        "proton.start('both', backend='replay+cpu', mode='replay:file=empty+cpu:depth=1')\n"
        "with proton.scope('s'): torch.ones(2)\n"
        "proton.finalize()"
    )
    settings = {"XDG_CACHE_HOME": str(cache), "PROTON_BENCH_NATIVE": "1"}
    subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=os.environ | settings, check=True
    )

    profile = read_profile(tmp_path / "both.proton")

    assert {profile.path(row) for row in range(1, len(profile))} == {("s",), ("s", "aten::ones")}

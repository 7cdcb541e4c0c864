"""This project's own hot paths are timed by any of its versions, in turn, and judged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles
from fakes.gated import Kernel, session
from fakes.stored import put

from benchmarks.hot_paths import __main__ as hot_paths
from proton_bench.formats.registry import read_profile
from proton_bench.gate.processes import OwnEnvironment

RECORD = Path(hot_paths.__file__).with_name("record.py")
PATHS = {
    "scope",
    "scope with a metric",
    "launch on the double",
    "load a profile",
    "sum over subtrees",
}

__all__ = ["cupti_doubles"]


def test_sides_take_turns_at_going_first() -> None:
    sides = [side for side, _ in hot_paths.in_turn(4)]

    assert sides == ["base", "new", "new", "base"] * 2
    assert [pair for _, pair in hot_paths.in_turn(2)] == [0, 0, 1, 1]


@pytest.mark.nightly
def test_a_process_writes_every_path_with_its_rounds(
    tmp_path: Path, cupti_doubles: Doubles
) -> None:
    out = tmp_path / "run.proton"
    folder = str(RECORD.parent)
    program = f"import sys; sys.path[0] = {folder!r}; import record; record.main({str(out)!r}, 3)"

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=cupti_doubles.environment(),
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("proton_bench/__init__.py")
    profile = read_profile(out)
    rows = {profile.path(row)[-1]: row for row in range(len(profile)) if profile.path(row)[1:]}
    assert set(rows) == PATHS
    table = profile.distributions["time (ns)"]
    assert {table.get(row).n for row in rows.values()} == {3}  # type: ignore[union-attr]
    assert profile.provenance["start_time_ns"] < profile.provenance["end_time_ns"]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Make both sides ready, with the measurements of a test."""
    scripted: dict[str, Any] = {"trees": []}

    @contextmanager
    def tree(revision: Any, folder: Path) -> Iterator[Path]:
        yield folder

    @contextmanager
    def own(folder: Path, place: Path, setup: str) -> Iterator[OwnEnvironment]:
        scripted["trees"].append((place.name, setup))
        yield OwnEnvironment("python", str(folder), {})

    def record(sides: Any, pairs: int, folder: Path) -> None:
        scripted["pairs"] = pairs
        kernels = [Kernel(f"hot paths/k{each}", 400.0) for each in range(4)]
        base, new = session([*kernels, Kernel("hot paths/scope", 300.0, slower=scripted["slower"])])
        put(folder / "base", *base)
        put(folder / "new", *new)

    monkeypatch.setattr(hot_paths, "worktree", tree)
    monkeypatch.setattr(hot_paths, "own_environment", own)
    monkeypatch.setattr(hot_paths, "record", record)
    monkeypatch.setattr(hot_paths, "find_revision", lambda ref, folder: ref)
    return scripted


@pytest.mark.parametrize(("slower", "code"), [(0.0, 0), (0.3, 1)])
def test_the_exit_code_is_that_of_the_gate(
    recorded: dict[str, Any], tmp_path: Path, slower: float, code: int
) -> None:
    recorded["slower"] = slower
    words = ["--base-ref", "main", "--pairs", "4", "--setup", "x", "--markdown", "said.md"]
    words[-1] = str(tmp_path / "said.md")

    assert hot_paths.main(words) == code
    assert recorded["pairs"] == 4
    assert recorded["trees"] == [("tree", "x"), (Path(__file__).parents[2].name, "x")]
    assert ("FAIL" in (tmp_path / "said.md").read_text()) == bool(code)


def test_an_unknown_revision_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert hot_paths.main(["--base-ref", "no-such-revision"]) == 2
    assert "no commit 'no-such-revision'" in capsys.readouterr().err

from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.errors import UsageError
from proton_bench.gate.runs import drop_unused, kept_folder, new_folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "mine").write_bytes(b"x")
    return folder


def test_a_new_folder_is_the_kept_one_and_git_leaves_it_alone(tmp_path: Path) -> None:
    store = tmp_path / ".proton"

    made = new_folder("ab", store)

    assert kept_folder("ab", store) == made
    assert (store / "ab" / ".gitignore").read_bytes() == b"*\n"


def test_a_folder_without_a_run_goes_with_what_was_made_for_it(tmp_path: Path) -> None:
    store = tmp_path / "project" / ".proton"
    store.parent.mkdir()
    used, unused = new_folder("ab", store), new_folder("ab", store)
    (used / "runs").mkdir()
    (used / "runs" / "0.proton").touch()

    drop_unused(unused)
    drop_unused(used)
    assert [path.name for path in (store / "ab").glob("*-*")] == [used.name]

    (used / "runs" / "0.proton").unlink()
    drop_unused(used)
    assert list(store.parent.iterdir()) == []


def test_without_an_experiment_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        kept_folder("ab", tmp_path / ".proton")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", [".proton", ".proton/ab", ".proton/ab/.gitignore"])
def test_nothing_is_written_through_links(tmp_path: Path, outside: Path, place: str) -> None:
    link = tmp_path / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)

    with pytest.raises(UsageError):
        new_folder("ab", tmp_path / ".proton")
    assert [each.name for each in outside.iterdir()] == ["mine"]

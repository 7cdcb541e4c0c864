from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.errors import UsageError
from proton_bench.gate.experiment.folders.json_files import write_json
from proton_bench.gate.experiment.folders.kept_runs import MANIFEST, KeptRuns
from proton_bench.gate.experiment.folders.store import drop_unused, kept_folder, new_folder
from proton_bench.gate.experiment.processes.fresh_process import Launch, run_fresh


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


@pytest.mark.parametrize("place", [".proton", ".proton/ab"])
def test_nothing_is_written_through_links(tmp_path: Path, outside: Path, place: str) -> None:
    link = tmp_path / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)

    with pytest.raises(UsageError):
        new_folder("ab", tmp_path / ".proton")
    assert [each.name for each in outside.iterdir()] == ["mine"]


def test_a_planted_list_of_what_git_ignores_is_not_followed(tmp_path: Path, outside: Path) -> None:
    (tmp_path / ".proton" / "ab").mkdir(parents=True)
    (tmp_path / ".proton" / "ab" / ".gitignore").symlink_to(outside / "new")

    new_folder("ab", tmp_path / ".proton")

    assert [each.name for each in outside.iterdir()] == ["mine"]


def test_a_link_is_not_an_experiment_to_go_on_with(tmp_path: Path, outside: Path) -> None:
    made = new_folder("ab", tmp_path / ".proton")
    (made.parent / "99999999").symlink_to(outside)

    assert kept_folder("ab", tmp_path / ".proton") == made


@pytest.mark.parametrize("name", ["lock", "0-base.log", "0-base.partial.proton", MANIFEST])
def test_an_experiment_with_links_is_refused(tmp_path: Path, outside: Path, name: str) -> None:
    KeptRuns.create(tmp_path / "kept", {})
    (tmp_path / "kept" / name).unlink(missing_ok=True)
    (tmp_path / "kept" / name).symlink_to(outside / "mine")

    for begin in (KeptRuns.open, lambda folder: KeptRuns.create(folder, {})):
        with pytest.raises(UsageError):
            begin(tmp_path / "kept")
    assert (outside / "mine").read_bytes() == b"x"


def test_documents_and_logs_take_the_place_of_links(tmp_path: Path, outside: Path) -> None:
    for name in ("document", "log"):
        (tmp_path / name).symlink_to(outside / "mine")

    write_json(tmp_path / "document", {})
    run_fresh(Launch(["true"], "", tmp_path / "log", {}))

    assert (outside / "mine").read_bytes() == b"x"

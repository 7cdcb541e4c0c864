from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fakes.fleet import add, ranked

from proton_bench.errors import ProfileFormatError
from proton_bench.store.questions import Question, path_series
from proton_bench.store.store import Store
from proton_bench.store.upkeep import Compacted, check, compact, delete

QUESTION = Question("fwd/*", by=("path", "run"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    store = Store.create(folder / "store")
    for run in range(3):
        add(store, folder / f"run{run}", ranked(0, [1.0 + run]), ranked(1, [2.0 + run]))
    return folder / "store"


def files(store: Store, table: str) -> list[Path]:
    return sorted((Path(store.uri) / table).rglob("*.parquet"))


def test_compaction_merges_files_and_changes_no_answer(fleet: Store) -> None:
    before = path_series(fleet.snapshot(), QUESTION)

    done = compact(fleet, reader_hours=0)

    assert done == Compacted(summed=6, files_before=9, files=4, dead_rows=0)
    assert [len(files(fleet, table)) for table in ("samples", "profiles", "stacks")] == [1, 1, 1]
    assert path_series(fleet.snapshot(), QUESTION).equals(before)
    assert compact(fleet, reader_hours=0) == Compacted(0, 4, 4, 0)


def test_readers_go_on_with_the_files_that_they_opened(fleet: Store) -> None:
    snapshot = fleet.snapshot()
    before = path_series(snapshot, QUESTION)

    compact(fleet)

    assert path_series(snapshot, QUESTION).equals(before)


@pytest.mark.parametrize("table", ["samples", "stacks", "profiles"])
def test_compaction_removes_what_the_log_names_and_nothing_behind_links(
    fleet: Store, tmp_path: Path, table: str
) -> None:
    outside, folder = tmp_path / "outside", Path(fleet.uri) / table
    for place in (outside, outside / ".git", folder):
        place.mkdir(exist_ok=True)
        (place / "notes.txt").write_text("mine")
        os.utime(place / "notes.txt", (0, 0))
    (folder / "link").symlink_to(outside)
    (folder / "to_file").symlink_to(outside / "notes.txt")
    (folder / "round").symlink_to(folder)

    compact(fleet, reader_hours=0, writer_hours=0)

    assert len(files(fleet, table)) == 1
    left = [outside / "notes.txt", outside / ".git" / "notes.txt", folder / "notes.txt"]
    assert [each.read_text() for each in left] == ["mine"] * 3
    assert (folder / "link").is_symlink()


def test_compaction_follows_no_name_of_an_edited_log_out_of_the_store(
    fleet: Store, tmp_path: Path
) -> None:
    victims = [tmp_path / "outside" / "a.parquet", tmp_path / "b.parquet"]
    for victim in victims:
        victim.parent.mkdir(exist_ok=True)
        victim.write_text("mine")
    folder = Path(fleet.uri) / "stacks"
    (folder / "link").symlink_to(victims[0].parent)
    compact(fleet, reader_hours=0)
    log = max((folder / "_delta_log").glob("*.json"))
    paths = ["link/a.parquet", "../../b.parquet", str(victims[1]), "link", "..", "_delta_log"]
    facts = {"deletionTimestamp": 1000, "dataChange": True}
    actions = [json.dumps({"remove": {"path": path, **facts}}) for path in paths]
    log.write_text("\n".join([log.read_text().rstrip(), *actions]))

    compact(fleet, reader_hours=0)

    assert [victim.read_text() for victim in victims] == ["mine", "mine"]
    assert log.exists()


def test_replaced_files_of_jobs_with_any_name_are_removed(store: Store, tmp_path: Path) -> None:
    for run in range(2):
        add(store, tmp_path / f"run{run}", ranked(0, [1.0 + run]), job="a b/ü%41=+&")

    compact(store, reader_hours=0)

    assert len(files(store, "samples")) == len(files(store, "profiles")) == 1


def test_a_whole_store_has_no_problems(fleet: Store) -> None:
    assert check(fleet) == {}


@pytest.mark.parametrize("table", ["samples", "profiles", "stacks"])
@pytest.mark.parametrize("damage", ["removed", "cut"])
def test_damaged_files_are_found(fleet: Store, table: str, damage: str) -> None:
    file = files(fleet, table)[0]
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-20])

    (place,) = check(fleet)

    assert place.startswith(f"{table}/")
    assert file.name in place
    with pytest.raises(ProfileFormatError, match="store maintain"):
        path_series(fleet.snapshot(), QUESTION)


def test_lost_samples_are_found(fleet: Store) -> None:
    (id, *_) = fleet.snapshot().profiles()["profile_id"].to_pylist()
    delete(fleet, "samples", f"profile_id = '{id}' AND value > 5")

    assert check(fleet) == {f"profile {id}": "it has 3 of its 4 samples"}


def test_lost_and_wrong_stacks_are_found(fleet: Store) -> None:
    with fleet.snapshot().connect() as reader:
        stacks = reader.table("FROM stacks WHERE name = 'fwd'")
    delete(fleet, "stacks", "name = 'fwd'")

    assert set(check(fleet).values()) == {
        "its parent is missing",
        "samples have it, but it is missing",
    }

    wrong = stacks.set_column(stacks.column_names.index("name"), "name", [["bwd"]])
    fleet.append("stacks", wrong)
    assert "its hash is not that of its names" in check(fleet).values()
    fleet.append("stacks", stacks)
    assert list(check(fleet).values()) == ["two call paths have it"]

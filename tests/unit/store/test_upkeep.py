from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from fakes.fleet import add, ranked

from proton_bench.errors import ProfileFormatError
from proton_bench.store.questions import Question, path_series
from proton_bench.store.store import Store
from proton_bench.store.upkeep import Compacted, check, compact, delete

QUESTION = Question("fwd/*", by=("path", "run"))


@pytest.fixture
def fleet(store: Store, tmp_path: Path) -> Store:
    for run in range(3):
        add(store, tmp_path / f"run{run}", ranked(0, [1.0 + run]), ranked(1, [2.0 + run]))
    return store


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


def test_files_of_killed_writers_are_removed_once_no_writer_can_be_that_old(fleet: Store) -> None:
    file = files(fleet, "samples")[0]
    rest = [file.with_name(name) for name in ("new.parquet", "old.parquet")]
    for each in rest:
        shutil.copy(file, each)
    os.utime(rest[1], (0, 0))

    compact(fleet, reader_hours=0)
    assert [each.exists() for each in rest] == [True, False]

    compact(fleet, reader_hours=0, writer_hours=0)
    assert not rest[0].exists()
    assert check(fleet) == {}


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
    with pytest.raises(ProfileFormatError, match="store check"):
        path_series(fleet.snapshot(), QUESTION)


def test_lost_samples_are_found(fleet: Store) -> None:
    (id, *_) = fleet.snapshot().profiles()["profile_id"].to_pylist()
    delete(fleet, "samples", f"profile_id = '{id}' AND value > 5")

    assert check(fleet) == {f"profile {id}": "it has 3 of its 4 samples"}


def test_lost_and_wrong_stacks_are_found(fleet: Store) -> None:
    with fleet.snapshot().connect() as connection:
        stacks = connection.sql("FROM stacks WHERE name = 'fwd'").to_arrow_table()
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

from __future__ import annotations

from pathlib import Path

import deltalake
import duckdb
import pytest
from fakes.fleet import add, ranked

from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.store.schema import SCHEMAS, TABLES
from proton_bench.store.store import QUERIED, Store
from proton_bench.store.upkeep import check, compact


def test_a_place_without_a_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="proton store init"):
        Store.open(tmp_path)


def test_creating_a_store_again_keeps_its_content(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "a", ranked(0))

    assert len(Store.create(store.uri).snapshot().profiles()) == 1


@pytest.mark.parametrize("folder", ["a b", "it's", 'é"#*{y}&+'])
def test_odd_folders_can_have_a_store(tmp_path: Path, folder: str) -> None:
    store = Store.create(tmp_path / folder)
    for rank in range(2):
        add(store, tmp_path / f"rank{rank}", ranked(rank), job="a b%é")
    compact(store, reader_hours=0)

    assert len(store.snapshot().profiles()) == 2
    assert check(store) == {}


@pytest.mark.parametrize(
    "folder", ["a?b", "run=5", "100%", "a%20b", "[a]", "a\\b", "a|b", "a\nb", "\udcff"]
)
def test_folders_that_no_store_can_have_are_refused(tmp_path: Path, folder: str) -> None:
    with pytest.raises(UsageError, match="choose a path"):
        Store.create(tmp_path / folder)

    assert not list(tmp_path.iterdir())


def test_relative_places_stay_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Store.at("fleet").uri == str(tmp_path / "fleet")
    assert Store.at("s3://bucket/fleet/").uri == "s3://bucket/fleet"


@pytest.mark.parametrize("description", ["proton_bench store 2.0", "", "something else"])
def test_other_versions_and_other_tables_are_refused(tmp_path: Path, description: str) -> None:
    for table in TABLES:
        place = str(tmp_path / table)
        deltalake.DeltaTable.create(place, schema=SCHEMAS[table], description=description)

    with pytest.raises(ProfileFormatError):
        Store.open(tmp_path)


def test_damaged_logs_are_named(store: Store) -> None:
    for file in (Path(store.uri) / "profiles/_delta_log").glob("*.json"):
        file.write_text("nonsense")

    with pytest.raises(ProfileFormatError, match="profiles"):
        store.snapshot()


def test_a_store_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OutputError):
        Store.create(tmp_path / "file")


def test_queries_see_the_tables_and_no_other_files(store: Store, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    add(store, tmp_path / "a", ranked(0))

    with store.snapshot().connect() as reader:
        counts = {name: reader.rows(f"SELECT count(*) FROM {name}") for name in QUERIED}
        files = f"{store.uri}/profiles/*/*/*.parquet"
        for table in (f"'{tmp_path}/secret.csv'", "glob('/*')", f"read_parquet('{files}')"):
            with pytest.raises(duckdb.PermissionException):
                reader.rows(f"FROM {table}")

    assert counts == {"samples": [(4,)], "stacks": [(4,)], "timelines": [(0,)], "profiles": [(1,)]}


@pytest.mark.parametrize(
    "condition",
    [
        "{}; COPY (SELECT 1) TO '{}'; SELECT true",
        "{}) OR (true",
        "{} ORDER BY 1",
        "{}, 1",
        "\udcff",
    ],
)
def test_a_condition_is_one_expression(store: Store, condition: str) -> None:
    file = Path(store.uri) / "file.csv"

    with pytest.raises(UsageError):
        store.snapshot().profiles(condition.format("true", file))

    assert not file.exists()


def test_a_condition_may_end_with_a_comment(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "a", ranked(0), ranked(1))

    assert len(store.snapshot().profiles("rank = 1 -- one")) == 1


def test_a_snapshot_stays_as_it_is(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "a", ranked(0))
    snapshot = store.snapshot()
    add(store, tmp_path / "b", ranked(1))

    assert len(snapshot.profiles()) == 1
    assert len(store.snapshot().profiles()) == 2

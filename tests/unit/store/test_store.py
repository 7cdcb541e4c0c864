from __future__ import annotations

import time
from datetime import date
from pathlib import Path

import deltalake
import duckdb
import pytest
from fakes.fleet import add, ranked

from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.store import turn as turns
from proton_bench.store.retention import Policy, retain
from proton_bench.store.schema import SCHEMAS, TABLES
from proton_bench.store.store import QUERIED, Store
from proton_bench.store.turn import turn
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


def test_upkeep_beside_other_upkeep_says_what_to_do(store: Store) -> None:
    with turn(store):
        with pytest.raises(OutputError, match="try again when it has ended"):
            compact(store)
        with pytest.raises(OutputError, match="try again when it has ended"):
            retain(store, Policy(90), date(2024, 6, 1))

    compact(store)


def test_a_turn_ends_with_an_error(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), turn(store):
        raise ZeroDivisionError

    compact(store)


def test_of_two_that_look_at_once_one_has_its_turn(store: Store) -> None:
    before = store.table("profiles")
    turns._commit(store, store.table("profiles"), 60)

    with pytest.raises(OutputError, match="try again when it has ended"):
        turns._commit(store, before, 60)


def test_the_turn_of_a_killed_command_ends_at_the_time_that_is_said(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns._commit(store, store.table("profiles"), 60)
    with pytest.raises(OutputError, match=r"killed, after 20.* UTC"):
        compact(store)

    later = time.time() + 61
    monkeypatch.setattr(turns.time, "time", lambda: later)
    compact(store)


def test_a_turn_lasts_as_long_as_the_process(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def until() -> int:
        return store.table("profiles").transaction_version(turns._NAME) or 0

    monkeypatch.setattr(turns, "_EVERY_S", 0.01)
    begin, first = time.time(), store.table("profiles").version()

    with turn(store):
        while store.table("profiles").version() < first + 3:  # it goes on by itself
            pass
        assert until() >= int(begin) + turns._LASTS_S
    assert until() <= time.time()

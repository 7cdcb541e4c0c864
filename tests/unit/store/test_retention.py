from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from fakes.fleet import START_NS, add, ranked

from proton_bench.errors import UsageError
from proton_bench.store.adding.ingest import Labels, add_files, find_files
from proton_bench.store.questions import Question, path_series
from proton_bench.store.restore import read_profiles
from proton_bench.store.retention import Policy, Retained, retain
from proton_bench.store.schema import SCHEMAS
from proton_bench.store.store import Store
from proton_bench.store.upkeep import check, compact

# Of runs on 2023-12-09.
FRESH, STRIPPED, REMOVED = date(2023, 12, 20), date(2024, 1, 5), date(2024, 6, 1)
OF_RUN = ("run", "profiles", "present", "total", "share", "count", "min", "max", "p5", "p99")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    store = Store.create(folder / "store")
    for run in range(2):
        add(store, folder / f"run{run}", *(ranked(k, [7.0 + run, 9.0 + k]) for k in range(3)))
    return folder / "store"


def lines(store: Store, *columns: str, **question: Any) -> list[tuple[Any, ...]]:
    table = path_series(store.snapshot(), Question("fwd/softmax", **question))
    return [tuple(row[name] for name in columns) for row in table.to_pylist()]


def test_fresh_profiles_stay(fleet: Store) -> None:
    assert retain(fleet, Policy(90), FRESH) == Retained()


@pytest.mark.parametrize("today", [STRIPPED, REMOVED])
def test_answers_about_runs_stay_the_same(fleet: Store, today: date) -> None:
    before = lines(fleet, *OF_RUN, by=("run",))

    retain(fleet, Policy(90), today)
    compact(fleet, writer_hours=0, reader_hours=0)

    assert lines(fleet, *OF_RUN, by=("run",)) == before
    assert check(fleet) == {}
    assert retain(fleet, Policy(90), today) == Retained()


def test_old_profiles_keep_sums_but_no_quantiles(fleet: Store) -> None:
    done = retain(fleet, Policy(90), STRIPPED)

    assert (done.summed, done.stripped, done.removed) == (6, 12, 0)
    found = lines(fleet, "rank", "total", "median", by=("rank",), where="run = 'run0'")
    assert found == [(0, 16.0, None), (1, 17.0, None), (2, 18.0, None)]


def test_of_older_runs_only_the_sum_is_left(fleet: Store) -> None:
    assert retain(fleet, Policy(90), REMOVED).removed == 6

    assert lines(fleet, "run", "rank", "profiles", by=("run", "rank")) == [
        ("run0", None, 3),
        ("run1", None, 3),
    ]
    snapshot = fleet.snapshot()
    (first, _) = [profile for _, profile in read_profiles(snapshot, snapshot.profiles())]
    assert first.inclusive("time (ns)")[0] == 11 * (16.0 + 17.0 + 18.0)


def test_a_condition_that_only_some_profiles_meet_is_answered_by_these(fleet: Store) -> None:
    retain(fleet, Policy(90), STRIPPED)

    found = lines(fleet, "run", "profiles", "total", "median", by=("run",), where="rank < 2")
    assert found == [("run0", 2, 33.0, None), ("run1", 2, 35.0, None)]


def test_late_profiles_join_the_sum_of_their_run(fleet: Store, tmp_path: Path) -> None:
    retain(fleet, Policy(90), REMOVED)
    add_files(fleet, find_files([tmp_path / "run0"]), Labels("train"))  # known for ever
    late = ranked(9, [50.0], start_time_ns=START_NS)
    add(fleet, tmp_path / "late/run0", late)

    for done in (Retained(), Retained(summed=1, stripped=2, removed=1)):
        found = lines(fleet, "run", "profiles", "total", "count", by=("run",))
        assert sorted(found) == [("run0", 4, 101.0, 7), ("run1", 3, 54.0, 6)]
        assert retain(fleet, Policy(90), FRESH if done == Retained() else REMOVED) == done


def test_profiles_in_two_sums_are_found(fleet: Store) -> None:
    retain(fleet, Policy(90), STRIPPED)
    with fleet.snapshot().connect() as reader:
        sums = reader.table(
            "SELECT * REPLACE ('other' AS profile_id, 0 AS samples) FROM all_profiles "
            "WHERE members IS NOT NULL AND run = 'run0'"
        )
    fleet.append("profiles", sums.select(SCHEMAS["profiles"].names).cast(SCHEMAS["profiles"]))

    assert list(check(fleet).values()) == ["it is in two sums"] * 3


@pytest.mark.parametrize(("raw_days", "rank_days"), [(-1, 5), (6, 5), (7, 4_000_000)])
def test_sketches_are_not_kept_longer_than_profiles(raw_days: int, rank_days: int) -> None:
    with pytest.raises(UsageError):
        Policy(rank_days, raw_days)

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from fakes.fleet import DAY_NS, START_NS, add, ranked

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.profile import Profile
from proton_bench.store import sums, workers
from proton_bench.store.questions import Question, path_series
from proton_bench.store.restore import read_runs
from proton_bench.store.schema import SCHEMAS
from proton_bench.store.store import Partition, Store, delete
from proton_bench.store.sums import sum_runs, sums_of, unsummed
from proton_bench.store.upkeep import check, compact

DAY = Partition(date(2023, 12, 9), "train")
QUESTIONS = [
    Question("fwd", by=("run",)),
    Question("fwd", by=("run",), where="rank > 0 OR run = 'run1'", quantiles=False),
    Question("fwd/*", by=("run", "path")),
    Question("**", by=("rank",)),
    Question("fwd/softmax", by=(), where="run != 'run1'"),
]


def called(profile: Profile) -> Profile:
    """Return the profile with a call of its scope, so that calls below are parts of it."""
    builder = ProfileBuilder()
    scope = builder.add(0, "fwd", FrameKind.SCOPE, metrics={"time (ns)": 5, "count": 1})
    builder.set_distribution(scope, "time (ns)", Distribution.from_samples([5.0]))
    builder.add(scope, "softmax", FrameKind.KERNEL, metrics={"time (ns)": 7, "count": 2})
    return replace(builder.build(), provenance=profile.provenance)


def measured(profile: Profile) -> Profile:
    """Return the profile with a metric of numbers that do not add up exactly."""
    builder = ProfileBuilder()
    scope = builder.add(0, "fwd", FrameKind.SCOPE, metrics={"energy (J)": 0.1})
    for name, value in (("softmax", 0.2), ("mul", 1e16), ("mm", 0.7)):
        builder.add(scope, name, FrameKind.KERNEL, metrics={"energy (J)": value})
    return replace(builder.build(), provenance=profile.provenance)


@pytest.fixture
def fleet(store: Store, tmp_path: Path) -> Store:
    """Three runs of three ranks; in the second, the scope has calls of its own in one rank."""
    dice = np.random.default_rng(5)
    for run in range(3):
        times = [dice.lognormal(6.0, 1.0, 40).round().tolist() for _ in range(3)]
        start_ns = START_NS + run * DAY_NS // 2
        ranks = [ranked(rank, own, start_time_ns=start_ns) for rank, own in enumerate(times)]
        ranks[0] = called(ranks[0]) if run == 1 else ranks[0]
        add(store, tmp_path / f"run{run}", *ranks)
    return store


def answers(store: Store) -> list[Any]:
    return [path_series(store.snapshot(), question) for question in QUESTIONS]


def members(store: Store) -> list[tuple[str, int]]:
    with store.snapshot().connect() as reader:
        query = "SELECT run, len(members) FROM all_profiles WHERE members IS NOT NULL ORDER BY ALL"
        found: list[tuple[str, int]] = reader.rows(query)
        return found


def test_answers_have_the_same_bits_with_and_without_sums(fleet: Store) -> None:
    before = answers(fleet)
    compact(fleet, reader_hours=0)

    assert members(fleet) == [("run0", 3), ("run1", 3), ("run2", 3)]
    assert all(found.equals(known) for found, known in zip(answers(fleet), before, strict=True))
    assert len(fleet.snapshot().profiles()) == 9
    assert check(fleet) == {}


def test_late_profiles_count_before_and_after_they_are_summed(fleet: Store, tmp_path: Path) -> None:
    compact(fleet)
    late = [ranked(rank, [50.0, 2.0], start_time_ns=START_NS) for rank in (8, 9)]
    add(fleet, tmp_path / "late/run0", *late)
    before = answers(fleet)

    compact(fleet)

    assert members(fleet) == [("run0", 2), ("run0", 3), ("run1", 3), ("run2", 3)]
    assert all(found.equals(known) for found, known in zip(answers(fleet), before, strict=True))


def test_numbers_that_are_rounded_have_the_same_bits_too(store: Store, tmp_path: Path) -> None:
    ranks = [measured(ranked(rank)) for rank in range(3)]
    add(store, tmp_path / "run", *ranks)
    question = Question("fwd", by=("run",), metric="energy (J)")
    before = path_series(store.snapshot(), question)

    compact(store)

    assert path_series(store.snapshot(), question).equals(before)


def test_runs_have_the_same_bits_with_and_without_sums(fleet: Store) -> None:
    def runs(quantiles: bool) -> list[Any]:
        snapshot = fleet.snapshot()
        found = list(read_runs(snapshot, snapshot.profiles(), quantiles=quantiles))
        found.sort(key=lambda each: each[0]["run"])
        return [
            (
                {name: value for name, value in row.items() if name not in ("batch", "samples")},
                [profile.path(each) for each in range(len(profile))],
                {name: each.to_list() for name, each in profile.columns.items()},
                {name: list(each) for name, each in profile.distributions.items()},
            )
            for row, profile in found
        ]

    for quantiles in (True, False):
        before = runs(quantiles)
        compact(fleet)
        assert str(runs(quantiles)) == str(before)
        assert len(before) == 3


def test_runs_of_today_and_single_profiles_are_not_summed(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "one", ranked(0))
    add(store, tmp_path / "two", ranked(1), ranked(2))

    assert unsummed(store.snapshot(), DAY.day, least=2) == []
    assert unsummed(store.snapshot(), date(2023, 12, 10), least=2) == [DAY]
    assert sum_runs(store, DAY, least=2) == 2
    assert members(store) == [("two", 2)]
    assert sum_runs(store, DAY, least=2) == 0


def test_sums_that_were_made_at_once_count_once(store: Store, tmp_path: Path) -> None:
    question = Question("fwd/softmax", by=("run",))
    add(store, tmp_path / "a/run", ranked(0), ranked(1))
    sum_runs(store, DAY, least=2)
    with store.snapshot().connect() as reader:
        query = "FROM stored_profiles WHERE members IS NOT NULL"
        first = reader.table(query)
    (id,) = first["profile_id"].to_pylist()
    delete(store, "profiles", f"profile_id = '{id}'")
    add(store, tmp_path / "b/run", ranked(2))
    before = path_series(store.snapshot(), question)
    sum_runs(store, DAY, least=2)
    store.append("profiles", first.select(SCHEMAS["profiles"].names))

    assert members(store) == [("run", 2), ("run", 3)]
    assert path_series(store.snapshot(), question).equals(before)
    assert set(check(store).values()) == {"it is in two sums"}
    sum_runs(store, DAY, least=1)
    assert sum(count for _, count in members(store)) == 3
    assert path_series(store.snapshot(), question).equals(before)
    assert check(store) == {}


def test_what_an_interrupted_sum_leaves_does_not_count(
    fleet: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answers(fleet)

    def interrupted(self: Store, table: str, rows: Any) -> None:
        if table == "profiles":
            raise KeyboardInterrupt
        append(self, table, rows)

    append = Store.append
    with monkeypatch.context() as patched:
        patched.setattr(Store, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compact(fleet)

    assert all(found.equals(known) for found, known in zip(answers(fleet), before, strict=True))
    assert compact(fleet, writer_hours=0).dead_rows > 0
    assert check(fleet) == {}
    assert len(members(fleet)) == 3


@pytest.mark.parametrize("tasks", [2, 7])
def test_sums_in_parts_are_those_of_the_whole(store: Store, tmp_path: Path, tasks: int) -> None:
    dice = np.random.default_rng(1)
    for run in range(3):
        ranks = [ranked(rank, dice.lognormal(5.0, 1.0, 20)) for rank in range(3)]
        add(store, tmp_path / f"{run}", *ranks)
    snapshot = store.snapshot()
    profiles = snapshot.profiles()
    groups = profiles["run"].to_pylist()
    whole = [samples for _, samples in sums_of(snapshot, profiles, groups)]

    with (
        patch.object(workers.Workers, "tasks", tasks),
        patch.object(sums, "_SAMPLES_OF_TASK", 1),
        patch.object(sums, "_sums", wraps=sums._sums) as asked,
    ):
        parts = [samples for _, samples in sums_of(snapshot, profiles, groups)]

    assert asked.call_count == tasks
    assert [len(samples) for samples in whole] == [4, 4, 4]
    assert [part.equals(samples) for part, samples in zip(parts, whole, strict=True)] == [True] * 3

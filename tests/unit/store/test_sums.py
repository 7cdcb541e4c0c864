from __future__ import annotations

import random
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from unittest import mock
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from fakes.fleet import DAY_NS, START_NS, add, ranked
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.profile import Profile
from proton_bench.store import sketches, sums, workers
from proton_bench.store.questions import Question, path_series
from proton_bench.store.restore import read_runs
from proton_bench.store.rows import StackTree, new_stacks, path_hashes, stack_hashes
from proton_bench.store.schema import SCHEMAS
from proton_bench.store.sketches import distribution_of, merged, quantiles_of, sketches_of
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


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of three ranks; in the second, the scope has calls of its own in one rank."""
    folder = tmp_path_factory.mktemp("written")
    store = Store.create(folder / "store")
    dice = np.random.default_rng(5)
    for run in range(3):
        times = [dice.lognormal(6.0, 1.0, 40).round().tolist() for _ in range(3)]
        start_ns = START_NS + run * DAY_NS // 2
        ranks = [ranked(rank, own, start_time_ns=start_ns) for rank, own in enumerate(times)]
        ranks[0] = called(ranks[0]) if run == 1 else ranks[0]
        add(store, folder / f"run{run}", *ranks)
    return folder / "store"


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


def test_sums_in_parts_are_those_of_the_whole(store: Store, tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    for run in range(3):
        ranks = [ranked(rank, dice.lognormal(5.0, 1.0, 20)) for rank in range(3)]
        add(store, tmp_path / f"{run}", *ranks)
    snapshot = store.snapshot()
    profiles = snapshot.profiles()
    groups = profiles["run"].to_pylist()
    whole = [samples for _, samples in sums_of(snapshot, profiles, groups)]

    with (
        patch.object(workers.Workers, "tasks", 7),
        patch.object(sums, "_SAMPLES_OF_TASK", 1),
        patch.object(sums, "_sums", wraps=sums._sums) as asked,
    ):
        parts = [samples for _, samples in sums_of(snapshot, profiles, groups)]

    assert asked.call_count == 7
    assert [len(samples) for samples in whole] == [4, 4, 4]
    assert [part.equals(samples) for part, samples in zip(parts, whole, strict=True)] == [True] * 3


NAMES = st.text(min_size=1, max_size=3)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    builder = ProfileBuilder(draw(NAMES))
    for row in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from([FrameKind.SCOPE, FrameKind.KERNEL]))
        builder.add(draw(st.integers(0, row)), draw(NAMES), kind)
    return builder.build()


def keys(profile: Profile) -> list[tuple[tuple[str, int], ...]]:
    """Return names and kinds from below the root down to each row."""
    found: list[tuple[tuple[str, int], ...]] = [()]
    for row in range(1, len(profile)):
        above = found[int(profile.parents[row])]
        found.append((*above, (profile.name(row), int(profile.kind(row)))))
    return found


@given(profiles(), profiles())
def test_hashes_are_equal_where_names_and_kinds_are(one: Profile, other: Profile) -> None:
    found: dict[object, set[int]] = {}
    for profile in (one, other):
        for key, hash in zip(keys(profile), stack_hashes(profile).tolist(), strict=True):
            found.setdefault(key, set()).add(hash)

    assert all(len(hashes) == 1 for hashes in found.values())
    assert len(set.union(*found.values())) == len(found)


@given(profiles())
def test_stacks_give_the_paths_back(profile: Profile) -> None:
    hashes = stack_hashes(profile)
    known: set[int] = set()
    tree = StackTree.of(new_stacks(profile, hashes, known))

    assert known == set(hashes.tolist())
    assert (path_hashes(tree) == tree.hashes).all()
    places = {hash: row for row, hash in enumerate(tree.hashes.tolist())}
    for row, hash in enumerate(hashes.tolist()):
        assert tree.path(places[hash]) == profile.path(row)
    assert len(new_stacks(profile, hashes, known)) == 0


def test_hashes_never_change() -> None:
    assert stack_hashes(ranked(0)).tolist() == [
        *(0, 1613163739403714777, 755921812282471524, 1931484593693383540)
    ]


def test_python_frames_have_file_and_line() -> None:
    builder = ProfileBuilder()
    builder.add(0, "model/block.py:12@forward", FrameKind.PYTHON)
    profile = builder.build()

    (row,) = new_stacks(profile, stack_hashes(profile), {0}).to_pylist()

    assert (row["file"], row["line"], row["kind"]) == ("model/block.py", 12, "python")


TIMES = st.lists(st.integers(0, 10**12).map(float), min_size=1, max_size=100)


POINTS = [0.0, 0.1, 0.5, 0.9, 1.0]


def samples_of(distributions: list[Distribution]) -> pa.Table:
    """Return the columns of ``samples`` that merging needs."""
    table = DistributionTable.from_mapping(dict(enumerate(distributions)))
    return pa.table(
        {
            "key": ["k"] * len(distributions),
            "count": table.n,
            "min": table.minimum,
            "max": table.maximum,
            "sketch": sketches_of(table, table.rows),
        }
    )


def merge(*tables: pa.Table) -> pa.Table:
    return merged(pa.concat_tables(tables), ["key"])


@given(st.lists(TIMES, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_merging_in_any_order_and_in_steps_gives_equal_bits(
    lists: list[list[float]], dice: random.Random
) -> None:
    parts = samples_of([Distribution.from_samples(times) for times in lists])
    whole = merge(parts)
    order = list(range(len(lists)))
    dice.shuffle(order)
    cut = dice.randint(0, len(order))
    pieces = [parts.take(rows) for rows in (order[:cut], order[cut:]) if rows]

    assert merge(*map(merge, pieces)).equals(whole)


@given(
    st.lists(TIMES, min_size=1, max_size=8),
    st.integers(1, 400),
    st.sampled_from([0, sketches._MOST_CELLS]),
    st.randoms(use_true_random=False),
)
def test_keys_that_are_merged_together_are_those_merged_alone(
    lists: list[list[float]], at_once: int, most_cells: int, dice: random.Random
) -> None:
    parts = samples_of([Distribution.from_samples(times) for times in lists])
    keys = [dice.choice("abc") for _ in lists]
    samples = parts.set_column(0, "key", pa.array(keys))
    limits = {"_BUCKETS_AT_ONCE": at_once, "_MOST_CELLS": most_cells}

    with mock.patch.multiple(sketches, **limits):
        found = merge(samples).sort_by("key")

    alone = [merge(samples.filter(pc.equal(samples["key"], key))) for key in sorted(set(keys))]
    assert found.equals(pa.concat_tables(alone))


@given(st.lists(TIMES, min_size=1, max_size=4))
def test_quantiles_of_merged_samples_are_within_the_error(lists: list[list[float]]) -> None:
    (row,) = merge(samples_of([Distribution.from_samples(times) for times in lists])).to_pylist()
    found = distribution_of({"value": 0.0, **row})
    times = np.sort(np.concatenate(lists))

    assert found is not None
    assert found.n == row["count"] == len(times)
    for point, value in zip(POINTS, found.quantiles(POINTS), strict=True):
        exact = times[int(point * (len(times) - 1))]
        assert value == pytest.approx(exact, rel=1.001 * found.relative_error, abs=0.0)


@given(
    st.lists(st.lists(st.integers(-3, 10**9).map(float), max_size=100), min_size=1, max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_quantiles_of_many_lines_are_those_of_each(
    lists: list[list[float]], has_sketch: list[bool]
) -> None:
    samples = samples_of([Distribution.from_samples(times) for times in lists])
    sketches = pc.if_else(pa.array(has_sketch[: len(lists)]), samples["sketch"], None)
    lines = samples.set_column(samples.column_names.index("sketch"), "sketch", sketches)

    found = [each.to_pylist() for each in quantiles_of(lines, POINTS)]

    alone = [distribution_of({"value": 0.0, **row}) for row in lines.to_pylist()]
    none = [None] * len(POINTS)
    expected = [none if each is None else each.quantiles(POINTS) for each in alone]
    assert [list(line) for line in zip(*found, strict=True)] == expected


def test_buckets_of_different_width_merge_to_the_wider_ones() -> None:
    wide = Distribution.from_samples(np.geomspace(1.0, 1e12, 5000))
    narrow = Distribution.from_samples(np.linspace(100.0, 101.0, 200))

    (row,) = merge(samples_of([wide, narrow])).to_pylist()

    assert wide.collapses > narrow.collapses == 0
    assert row["sketch"]["collapses"] == wide.collapses
    assert sum(row["sketch"]["count"]) == 5200


def old(**fields: Any) -> Distribution:
    """Return a distribution with buckets, of an earlier version."""
    buckets = {"bucket_index": np.array([1, 2], "<i4"), "bucket_count": np.array([3, 4], "<i8")}
    moments = {"total": 9.0, "minimum": 1.0, "maximum": 2.0, "sum_ln": 0.0, "sum_ln2": 0.0}
    return Distribution(**{"n": 7, "zero_count": 0, **moments, **buckets, **fields})


@pytest.mark.parametrize(
    "distribution",
    [old(gamma=1.02), old(value_error=0.03), old(open_below=True), old(n=9)],
    ids=["other width", "inexact values", "open below", "sums only"],
)
def test_what_cannot_be_added_exactly_has_no_sketch(distribution: Distribution) -> None:
    parts = samples_of([distribution, Distribution.from_samples([1.0, 2.0])])

    assert [each is None for each in parts["sketch"].to_pylist()] == [True, False]
    assert merge(parts)["sketch"].to_pylist() == [None]

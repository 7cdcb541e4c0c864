from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.fleet import DAY_NS, START_NS, add, ranked
from fakes.timed import profile_of_times
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.errors import UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.profile import Profile
from proton_bench.store.retention import Policy, retain
from proton_bench.store.rows import ProfileKey, sample_rows, stack_hashes
from proton_bench.store.selection import Selection
from proton_bench.store.store import Store

TIME = "time (ns)"


def selected(store: Store, condition: str = "") -> Selection:
    found = Selection.of(f"{store.uri}?{condition}")
    assert found is not None
    return found


def test_words_name_stores_by_folder_or_url(store: Store) -> None:
    assert Selection.of(store.uri) == Selection(store.uri, "true")
    assert Selection.of(f"{store.uri}? run = 'a?b' ") == Selection(store.uri, "run = 'a?b'")
    assert Selection.of("s3://bucket/fleet?rank = 0") == Selection("s3://bucket/fleet", "rank = 0")


def test_other_words_name_none(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "runs?.proton"
    file.touch()

    assert [Selection.of(word) for word in (file, os.fspath(tmp_path), "main", "a\0b")] == [
        None
    ] * 4


def test_the_ranks_of_a_run_are_one_run(store: Store, tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    for run in range(2):
        times = [dice.lognormal(8.0, 0.5, 50).round() for _ in range(3)]
        start_ns = START_NS - run * DAY_NS
        ranks = [ranked(rank, own, start_time_ns=start_ns) for rank, own in enumerate(times)]
        add(store, tmp_path / f"run{run}", *ranks)

    runs = selected(store).runs()

    assert [run.source for run in runs] == ["train/run1", "train/run0"]
    profile = runs[0].profile
    (row,) = (row for row in range(len(profile)) if profile.name(row) == "softmax")
    assert profile.columns[TIME].values[row] == sum(map(sum, times))
    assert profile.columns["count"].values[row] == 150
    table = profile.samples(TIME)
    assert table is not None
    whole = Distribution.merged(Distribution.from_samples(own.tolist()) for own in times)
    assert dict(table)[row].quantiles([0.5, 0.99]) == whole.quantiles([0.5, 0.99])


def test_sums_without_sketches_have_the_same_sums(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "run", ranked(0), ranked(1))

    (whole,), (plain,) = selected(store).runs(), selected(store).runs(quantiles=False)

    assert plain.profile.inclusive(TIME).tolist() == whole.profile.inclusive(TIME).tolist()
    assert plain.profile.samples(TIME) is None


def test_processes_without_a_rank_are_runs_of_their_own(store: Store, tmp_path: Path) -> None:
    times = (100.0, 200.0)
    profiles = [
        profile_of_times({"k": [time]}, provenance={"start_time_ns": START_NS + int(time)})
        for time in times
    ]
    add(store, tmp_path / "run", *profiles)

    assert [run.profile.inclusive(TIME)[0] for run in selected(store).runs()] == list(times)


def test_a_run_of_which_only_the_sum_is_left_is_a_run(store: Store, tmp_path: Path) -> None:
    from datetime import UTC, datetime

    add(store, tmp_path / "run", ranked(0), ranked(1))
    (before,) = selected(store).runs()
    retain(store, Policy(0, 0), datetime(2030, 1, 1, tzinfo=UTC).date())

    (after,) = selected(store).runs()

    assert after.profile.inclusive(TIME).tolist() == before.profile.inclusive(TIME).tolist()


def test_conditions_choose_profiles(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "run", ranked(0), ranked(1))

    rows = [row["rank"] for row, _ in selected(store, "rank = 1").profiles()]

    assert rows == [1]


def test_more_values_than_fit_into_memory_are_refused_before_they_are_read(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, tmp_path / "run", ranked(0), ranked(1))
    (samples,) = {row["samples"] for row in store.snapshot().profiles().to_pylist()}
    monkeypatch.setattr("proton_bench.store.selection._MOST_SAMPLES", samples)

    assert len(list(selected(store, "rank = 1").profiles())) == 1
    with pytest.raises(UsageError, match="2 selected profiles"):
        next(selected(store).profiles())


def test_more_runs_than_fit_into_memory_are_refused_whatever_their_ranks(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, tmp_path / "one", ranked(0), ranked(1))
    add(store, tmp_path / "two", ranked(2), ranked(3))
    samples = max(row["samples"] for row in store.snapshot().profiles().to_pylist())
    monkeypatch.setattr("proton_bench.store.selection._MOST_SAMPLES", samples)

    assert len(selected(store, "run = 'one'").runs()) == 1
    with pytest.raises(UsageError, match="4 selected profiles"):
        selected(store).runs()


@pytest.mark.parametrize("condition", ["rank = 7", "nope", "true; DROP TABLE profiles"])
def test_wrong_selections_are_errors_of_the_caller(
    store: Store, tmp_path: Path, condition: str
) -> None:
    add(store, tmp_path / "run", ranked(0))

    with pytest.raises(UsageError):
        selected(store, condition).runs()


def test_a_url_without_a_store_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Selection(os.fspath(tmp_path)).runs()


KEY = ProfileKey(0, "job", "id", "batch")


# For each row the one above it, and its times: none, without samples, or with them.
TREES = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.none() | st.tuples(st.booleans(), st.lists(st.integers(0, 10**9), min_size=1)),
    ),
    max_size=30,
)


def profile_of(tree: list[tuple[int, tuple[bool, list[int]] | None]], number: type) -> Profile:
    builder = ProfileBuilder()
    for place, (above, times) in enumerate(tree):
        row = builder.add(min(above, place), f"row{place}", FrameKind.SCOPE)
        if times is None:
            continue
        has_samples, own = times
        builder.set(row, TIME, number(sum(own)))
        if has_samples:
            builder.set(row, "count", len(own))
            samples = Distribution.from_samples([float(each) for each in own])
            builder.set_distribution(row, TIME, samples)
    return builder.build()


def expected(profile: Profile, row: int, own: dict[int, dict[str, Any]]) -> dict[str, Any] | None:
    """Return what the rows below a row have, from their own lines."""
    inside = range(row + 1, int(profile.subtree_end[row]))
    lines = [own[each] for each in inside if each in own and own[each]["value"] is not None]
    if not lines:
        return None
    counts = [each["count"] for each in lines if each["count"] is not None]
    has_all, is_called = all(each["min"] is not None for each in lines), bool(own[row]["count"])
    return {
        "value": math.fsum(each["value"] for each in lines),
        "count": sum(counts) if counts and not is_called else None,
        "min": min(each["min"] for each in lines) if has_all and not is_called else None,
        "max": max(each["max"] for each in lines) if has_all and not is_called else None,
    }


@pytest.mark.parametrize("number", [int, float])
@given(TREES)
def test_a_line_says_what_the_rows_below_have(number: type, tree: list[Any]) -> None:
    profile = profile_of(tree, number)
    samples = sample_rows(profile, stack_hashes(profile), KEY).to_pylist()
    lines = {each["node"]: each for each in samples if each["sample_type"] == "time"}

    assert {row for row, line in lines.items() if line["value"] is None} == {
        row
        for row in range(len(profile))
        if row not in {n for n, each in lines.items() if each["value"] is not None}
        and any(
            lines.get(each, {}).get("value") is not None
            for each in range(row + 1, int(profile.subtree_end[row]))
        )
    }
    for row, line in lines.items():
        assert line["below"] == expected(profile, row, lines)


def test_small_numbers_below_large_ones_are_kept() -> None:
    builder = ProfileBuilder()
    for value in (1e18, 0.25):
        scope = builder.add(0, f"scope{value}", FrameKind.SCOPE)
        builder.add(scope, "k", FrameKind.KERNEL, metrics={"energy (J)": value})
    profile = builder.build()

    lines = sample_rows(profile, stack_hashes(profile), KEY).to_pylist()

    assert [each["below"]["value"] for each in lines if each["below"]][1:] == [1e18, 0.25]

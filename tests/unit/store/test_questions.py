from __future__ import annotations

import itertools
import pickle
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from fakes.fleet import DAY_NS, START_NS, add, ranked
from fakes.timed import profile_of_times

from proton_bench.analysis.metrics.samples import sample_values
from proton_bench.errors import UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.store import questions
from proton_bench.store.questions import (
    Parts,
    Question,
    answer,
    choose,
    combined,
    parts_of,
    path_series,
)
from proton_bench.store.store import Partition, Store
from proton_bench.store.workers import Workers


def lines(store: Store, *columns: str, **question: Any) -> list[tuple[Any, ...]]:
    """Return these columns of the answer."""
    table = path_series(store.snapshot(), Question(**question))
    return [tuple(row[name] for name in columns) for row in table.to_pylist()]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of two ranks; the later one takes twice as long, and rank 1 a tenth longer."""
    folder = tmp_path_factory.mktemp("written")
    store = Store.create(folder / "store")
    for run in range(2):
        start_ns = START_NS + run * DAY_NS
        factor = 1.0 + run
        ranks = [
            ranked(rank, [factor * (100.0 + 10.0 * rank)] * 3, start_time_ns=start_ns)
            for rank in range(2)
        ]
        add(store, folder / f"run{run}", *ranks)
    return folder / "store"


def test_a_path_over_runs(fleet: Store) -> None:
    columns = ("run", "profiles", "present", "total", "share", "least", "middle", "most", "count")

    assert lines(fleet, *columns, path="fwd/softmax", by=("run",)) == [
        ("run0", 2, 2, 630.0, pytest.approx(1 / 11), 300.0, 315.0, 330.0, 6),
        ("run1", 2, 2, 1260.0, pytest.approx(1 / 11), 600.0, 630.0, 660.0, 6),
    ]


def test_a_path_over_ranks_in_one_run(fleet: Store) -> None:
    found = lines(
        fleet, "rank", "total", "min", "max", path="softmax", by=("rank",), where="run = 'run0'"
    )

    assert found == [(0, 300.0, 100.0, 100.0), (1, 330.0, 110.0, 110.0)]


def test_each_path_that_a_glob_matches(fleet: Store) -> None:
    found = lines(fleet, "path", "total", path="fwd/*", by=("path",), where="rank = 0")

    assert found == [("fwd/mul", 9000.0), ("fwd/softmax", 900.0)]


def test_a_scope_has_what_lies_below(fleet: Store) -> None:
    assert lines(fleet, "total", "share", "count", path="fwd", by=("run",), where="rank = 0") == [
        (3300.0, 1.0, 6),
        (6600.0, 1.0, 6),
    ]


def test_nested_matches_count_once_unless_each_has_a_line(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "a", profile_of_times({"a/b/a/k": [5.0], "a/c": [7.0]}))

    assert lines(store, "total", path="a", by=()) == [(12.0,)]
    assert lines(store, "path", "total", path="a", by=("path",)) == [("a", 12.0), ("a/b/a", 5.0)]


def test_metrics_that_do_not_add_up_are_those_of_the_matched_rows(
    store: Store, tmp_path: Path
) -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    outer = builder.add(0, "a", FrameKind.SCOPE, metrics={"wall (ns)": 100})
    builder.add(outer, "b", FrameKind.SCOPE, metrics={"wall (ns)": 60})
    add(store, tmp_path / "a", builder.build())

    assert lines(store, "total", "share", path="a", by=(), metric="wall (ns)") == [(100.0, None)]


def test_groups_without_a_value_are_none(fleet: Store, tmp_path: Path) -> None:
    add(fleet, tmp_path / "x", profile_of_times({"fwd/softmax": [50.0]}, provenance={"rank": None}))

    found = lines(fleet, "rank", "total", path="softmax", by=("rank",))

    assert sorted(found, key=str) == [(0, 900.0), (1, 990.0), (None, 50.0)]


def test_quantiles_are_those_of_all_calls_together(store: Store, tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    times = [dice.lognormal(8.0, 0.5, 500).tolist() for _ in range(4)]
    add(store, tmp_path / "a", *itertools.starmap(ranked, enumerate(times)))

    ((p5, median, p99),) = lines(store, "p5", "median", "p99", path="softmax", by=())

    whole = Distribution.merged(Distribution.from_samples(each) for each in times)
    assert [p5, median, p99] == whole.quantiles([0.05, 0.5, 0.99])


def test_calls_of_a_row_are_not_those_of_the_parts_below_it(store: Store, tmp_path: Path) -> None:
    builder = ProfileBuilder()
    above = builder.add(0, "step", FrameKind.SCOPE)
    for name, times in (("mm", [100.0, 200.0, 300.0]), ("resolve", [1.0] * 6)):
        metrics = {"time (ns)": sum(times), "count": len(times)}
        above = builder.add(above, name, FrameKind.OP, metrics=metrics)
        builder.set_distribution(above, "time (ns)", Distribution.from_samples(times))
    profile = builder.build()
    add(store, tmp_path / "a", profile)

    shown = sample_values(profile, "median_time").values
    columns = ("total", "count", "min", "max", "median")
    near = pytest.approx(shown[2], rel=0.002)  # the store keeps buckets alone
    assert lines(store, *columns, path="mm", by=()) == [(606.0, 3, 100.0, 300.0, near)]
    assert lines(store, *columns, path="step", by=()) == [(606.0, 9, 1.0, 300.0, None)]


def test_quantiles_are_unknown_if_a_part_of_the_calls_has_no_sketch(
    store: Store, tmp_path: Path
) -> None:
    builder = ProfileBuilder()
    scope = builder.add(0, "fwd", FrameKind.SCOPE)
    builder.add(scope, "softmax", FrameKind.KERNEL, metrics={"time (ns)": 70.0, "count": 2})
    add(store, tmp_path / "a", ranked(0), builder.build())

    assert lines(store, "total", "count", "min", "median", path="softmax", by=()) == [
        (370.0, 4, None, None)
    ]


def test_without_quantiles_the_rest_is_the_same(fleet: Store) -> None:
    columns = ("run", "total", "share", "least", "count", "min", "max")
    found = lines(fleet, *columns, "median", path="fwd/*", by=("run",), quantiles=False)

    assert [line[:-1] for line in found] == lines(fleet, *columns, path="fwd/*", by=("run",))
    assert [line[-1] for line in found] == [None, None]


def test_integers_add_up_exactly(store: Store, tmp_path: Path) -> None:
    builder = ProfileBuilder()
    for value in (2**53, 1, 1, 1):
        builder.add(0, "k", FrameKind.KERNEL, metrics={"bytes": value})
    add(store, tmp_path / "a", builder.build())

    assert lines(store, "total", path="k", by=(), metric="bytes") == [(float(2**53 + 4),)]


def test_parts_add_up_to_equal_bits_in_any_order(store: Store, tmp_path: Path) -> None:
    dice = np.random.default_rng(2)
    for run in range(3):
        ranks = [ranked(rank, dice.lognormal(5.0, 1.0, 90)) for rank in range(4)]
        add(store, tmp_path / f"{run}", *ranks)
    question = Question("fwd/*", by=("path", "run"))
    whole = path_series(store.snapshot(), question)
    chosen = choose(store.snapshot(), question)
    profiles = chosen.profiles.append_column("is_split", pa.array([True] * len(chosen.profiles)))
    parts = [
        parts_of(store.snapshot(), question, profiles.take([place]), paths=chosen.paths)
        for place in dice.permutation(len(profiles)).tolist()
    ]
    steps = [combined(parts[start : start + 3]) for start in range(0, len(parts), 3)]

    assert answer(question, chosen, combined(steps)).equals(whole)
    assert path_series(store.snapshot(), question).equals(whole)


class Shared(Workers):
    """Workers that keep what they were sent and gave; there are no more shares than days."""

    tasks = 100

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.given: list[Parts] = []

    def joined(self, function: Any, items: Any, join: Any) -> Any:
        self.sent = [pickle.dumps(each) for each in items]
        self.given = [function(pickle.loads(each)) for each in self.sent]
        return join([join(self.given[:2]), *self.given[2:]])


def test_sketches_are_sent_of_groups_in_several_shares_alone(store: Store, tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    for run in range(3):
        start_ns = START_NS + run * DAY_NS
        ranks = [
            ranked(rank, dice.lognormal(5.0, 1.0, 90), start_time_ns=start_ns) for rank in range(40)
        ]
        add(store, tmp_path / f"{run}", *ranks)
    for by, sketches in ((("run", "rank"), 0), (("rank",), 3 * 40), (("path",), 3)):
        question = Question("softmax", by=by)
        whole = path_series(store.snapshot(), question)
        shared = Shared()

        with mock.patch.object(questions, "open_workers", return_value=nullcontext(shared)):
            assert path_series(store.snapshot(), question).equals(whole)

        assert sum(len(parts.calls) for parts in shared.given) == sketches
        profiles = choose(store.snapshot(), question).profiles
        assert len(shared.sent) == 3
        assert sum(map(len, shared.sent)) < len(pickle.dumps(profiles)) + 3 * 2000


def test_more_samples_than_fit_into_memory_are_read_in_shares(fleet: Store) -> None:
    question = Question("fwd/*", by=("path", "rank"))
    whole = path_series(fleet.snapshot(), question)
    read = mock.Mock(wraps=parts_of)

    with mock.patch.multiple(questions, _SKETCHES_AT_ONCE=1, parts_of=read):
        assert path_series(fleet.snapshot(), question).equals(whole)

    assert read.call_count == 2


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"path": "nothing/**"}, "no call path"),
        ({"path": "fwd", "where": "nope = 1"}, "nope"),
        ({"path": "fwd", "where": "run = "}, "syntax"),
        (
            {"path": "fwd", "where": "(SELECT count(*) FROM read_csv('/etc/passwd')) > 0"},
            "disabled",
        ),
    ],
    ids=["path", "column", "syntax", "file"],
)
def test_wrong_questions_are_errors_of_the_caller(
    fleet: Store, question: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        path_series(fleet.snapshot(), Question(**question))


@pytest.mark.parametrize("by", [("nope",), ("run", "run")])
def test_groups_are_distinct_columns_of_profiles(by: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        Question("fwd", by=by)


def test_only_files_of_chosen_days_and_jobs_are_read(fleet: Store) -> None:
    with fleet.snapshot().connect() as reader:
        query = "SELECT sum(value) FROM samples WHERE date = '2023-12-09' AND job = 'train'"
        ((_, plan),) = reader.rows(f"EXPLAIN ANALYZE {query}")

    assert "Scanning Files: 1/2" in " ".join(plan.split())


def test_only_files_of_named_partitions_are_read(store: Store, tmp_path: Path) -> None:
    jobs = ("train", "a b%/\u00e9=c", "x%20y")
    for rank, job in enumerate(jobs):
        add(store, tmp_path / f"{rank}", ranked(rank), job=job)
    ((day,),) = {(row["date"],) for row in store.snapshot().profiles().to_pylist()}

    for job in jobs:
        with store.snapshot().connect("stored_samples", {Partition(day, job)}) as reader:
            assert reader.rows("SELECT DISTINCT job FROM stored_samples") == [(job,)]


def test_partitions_are_those_of_rows_as_they_are_received(
    capfd: pytest.CaptureFixture[str],
) -> None:
    days = [date(1969, 12, 31), date(2023, 12, 9), date(2023, 12, 9)]
    (_, sent) = pa.array(days).buffers()
    received = pa.py_buffer(b"x" + sent.to_pybytes()).slice(1)  # not aligned, as in a message
    column = pa.Array.from_buffers(pa.date32(), len(days), [None, received])

    found = Partition.of_rows(pa.table({"date": column, "job": ["a/b", "c", "c"]}))

    assert found == {Partition(days[0], "a/b"), Partition(days[1], "c")}
    assert capfd.readouterr().err == ""

"""A store has the history of its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from fakes.gated import Kernel, process
from fakes.histories import FIRST_S, HOUR_S, recorded, revision
from fakes.stored import other_gpu, put
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.baselines import BaselineStore
from proton_bench.gate.history.history import History, SeriesKey, history_of
from proton_bench.gate.history.points import Followed, Point
from proton_bench.gate.history.sources import Sources
from proton_bench.gate.policy import Policy, parse_threshold

pytest.importorskip("deltalake", reason="needs the extra store")

from fakes.fleet import DAY_NS, START_NS, add, ranked
from fakes.timed import profile_of_times

if TYPE_CHECKING:
    from proton_bench.store.store import Store

METRICS = ("", "median", "mean", "min", "p5", "p95", "p99", "total", "tail", "wall")
# Of quantiles, which sketches keep.
SKETCHED = 2e-3
SOFTMAX = ("fwd", "softmax")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    from proton_bench.store.store import Store

    return Store.create(tmp_path / "fleet")


def sources(store: Store, *words: str) -> Sources:
    return Sources.named(words or [store.uri], BaselineStore(Path(store.uri).parent / ".proton"))


def asking_for(metric: str) -> Policy:
    return Policy(thresholds=(parse_threshold(f"{metric}:5%"),)) if metric else Policy()


def points(store: Store, *paths: str, metric: str = "") -> list[Point]:
    return list(sources(store).points(Followed(asking_for(metric), paths)))


def history(found: Sources, followed: Followed) -> History:
    return history_of(found.points(followed), followed.policy, acknowledged={})


def assert_same(files: Sequence[Path], store: Store, followed: Followed) -> History:
    """Check that files and the store that they were added to have one history."""
    of_files = history(sources(store, *map(str, files)), followed)
    of_store = history(sources(store), followed)

    expected, found = ({_plain(t.series.key): t for t in h.traces} for h in (of_files, of_store))
    assert found.keys() == expected.keys()
    for key, trace in expected.items():
        other = found[key]
        assert other.series.values == pytest.approx(trace.series.values, rel=SKETCHED)
        assert other.series.share == pytest.approx(trace.series.share, rel=SKETCHED)
        if other.series.values.tolist() == trace.series.values.tolist():
            assert [step.at for step in other.steps] == [step.at for step in trace.steps]
        for one, point in zip(other.series.points, trace.series.points, strict=True):
            for fact in ("source", "time_ns", "revision", "is_dirty", "tools", "runs", "recording"):
                assert getattr(one, fact) == getattr(point, fact)
    return of_store


def _plain(key: SeriesKey) -> SeriesKey:
    return replace(key, group="")  # a store has a job there


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Store]:
    """Files of which one path is slower from number 13 on, and a store with them."""
    from proton_bench.store.store import Store

    place = tmp_path_factory.mktemp("slower")
    folder = put(place / "runs", *recorded(26, {"b": (13, 0.09)}))
    files = [folder / f"{number}.proton" for number in range(26)]
    store = Store.create(place / "fleet")
    add_all(store, files)
    return files, store


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("paths", [(), ("step/b",)])
def test_files_and_their_store_have_one_history(
    slower: tuple[list[Path], Store], metric: str, paths: tuple[str, ...]
) -> None:
    found = assert_same(*slower, Followed(asking_for(metric), paths))

    if metric in {"", "median", "mean", "p95"}:
        failing = {trace.series.key.path: trace for trace in found.failing}
        assert [step.at for step in failing["step", "b"].steps] == [13]


def add_all(store: Store, files: Sequence[Path]) -> None:
    from proton_bench.store.adding.ingest import Labels, add_files

    add_files(store, list(files), Labels("nightly"))


NAMES = ("gemm", "relu.0", "triton_poi_fused_add_3", "a/b", "void f<int>(float*)")


@settings(
    max_examples=how_many(25, keep=3),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    data=st.data(),
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True),
    count=st.integers(2, 9),
    metric=st.sampled_from(METRICS),
)
def test_a_store_has_the_history_of_any_files(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    names: list[str],
    count: int,
    metric: str,
) -> None:
    from proton_bench.store.store import Store

    place = tmp_path_factory.mktemp("any")
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    runs = []
    for number in range(count):
        own = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        slow = data.draw(st.sampled_from([1.0, 1.5, 20.0]))
        kernels = [Kernel(f"step/{name}", time_ns=3_000.0 * slow) for name in own]
        facts = data.draw(st.sampled_from([{}, {"torch": "9.1"}, other_gpu(uuid="GPU-2")]))
        git = {"revision": revision(number), "dirty": bool(number % 2)}
        at = FIRST_S + number * HOUR_S
        runs.append(process(kernels, generator, new=False, at=at, git=git, **facts))
    put(place / "runs", *runs)
    files = [place / "runs" / f"{number}.proton" for number in range(count)]
    store = Store.create(place / "fleet")
    add_all(store, files)

    assert_same(files, store, Followed(asking_for(metric)))


def test_an_unfinished_run_is_left_out_and_named(store: Store, tmp_path: Path) -> None:
    whole, cut = recorded(2, {})
    folder = put(tmp_path / "runs", whole, Run(replace(cut.profile, partial=True), ""))
    add_all(store, [folder / "0.proton", folder / "1.proton"])
    found = sources(store)

    assert len(list(found.points(Followed(Policy())))) == 1
    assert list(found.left_out.values()) == ["it has no finished run"]


def add_run(store: Store, run: int, *factors: float) -> None:
    """Add a run with a rank for each factor; ``fwd/softmax`` takes 100 and 200 ns times it."""
    ranks = [
        ranked(
            rank,
            [100.0 * factor, 200.0 * factor],
            start_time_ns=START_NS + run * DAY_NS,
            git={"revision": f"{run:040x}", "dirty": False},
        )
        for rank, factor in enumerate(factors)
    ]
    add(store, Path(store.uri).parent / f"run{run}", *ranks)


def test_the_ranks_of_a_run_are_one_point_on_no_certain_machine(store: Store) -> None:
    for run in (0, 1):
        add_run(store, run, 1.0, 3.0)

    for metric, value in {"total": 1200.0, "mean": 300.0, "min": 100.0}.items():
        first, second = points(store, "fwd/softmax", metric=metric)

        assert (first.group, first.source, second.source) == ("train", "run0", "run1")
        assert first.time_ns == START_NS
        assert second.revision == f"{1:040x}"
        assert first.machine == (("architecture", "90"),)
        assert first.values[SOFTMAX, 0, metric].value == pytest.approx(value, rel=SKETCHED)


def test_names_that_differ_by_running_numbers_are_one_series(store: Store) -> None:
    for run, number in enumerate((3, 7)):
        facts = {"start_time_ns": START_NS + run * DAY_NS}
        profile = profile_of_times({f"triton_poi_fused_add_{number}": [100.0]}, provenance=facts)
        add(store, Path(store.uri).parent / f"run{run}", profile)

    first, second = (set(point.values) for point in points(store))

    assert first == second
    assert ("triton_poi_fused_add",) in {path for path, _, _ in first}


def test_a_run_in_several_selections_counts_once(store: Store) -> None:
    for run in range(2):
        add_run(store, run, 1.0, 3.0)
    words = [f"{store.uri}?rank=0", store.uri, f"{store.uri}/?rank=1 or run='run1'"]
    found = sources(store, *words)

    assert [each.source for each in found.points(Followed(Policy()))] == ["run0", "run1"]
    assert list(found.left_out) == words[1:]
    assert "2 of its runs were named before" in found.left_out[words[1]]


def test_a_selection_without_runs_is_an_error_of_the_caller(store: Store) -> None:
    add_run(store, 0, 1.0)

    with pytest.raises(UsageError):
        list(sources(store, f"{store.uri}?run='gone'").points(Followed(Policy())))

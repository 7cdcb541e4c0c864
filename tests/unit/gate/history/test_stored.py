from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proton_bench.errors import UsageError
from proton_bench.gate.baseline.store import BaselineStore
from proton_bench.gate.history.history import history_of
from proton_bench.gate.history.points import Followed, Point
from proton_bench.gate.history.sources import Sources
from proton_bench.gate.policy.policy import Policy

pytest.importorskip("deltalake", reason="needs the extra store")

from fakes.fleet import DAY_NS, START_NS, add, ranked
from fakes.timed import profile_of_times

if TYPE_CHECKING:
    from proton_bench.store.store import Store

SOFTMAX = (("fwd", "softmax"), 0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    from proton_bench.store.store import Store

    return Store.create(tmp_path / "fleet")


def points(
    store: Store, *paths: str, metric: str = "", policy: Policy | None = None
) -> list[Point]:
    sources = Sources.named([store.uri], BaselineStore(Path(store.uri).parent / ".proton"))
    return list(sources.points(Followed(policy or Policy(), paths, metric)))


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


def test_each_run_is_a_point_with_the_mean_of_its_profiles(store: Store) -> None:
    for run in (0, 1):
        add_run(store, run, 1.0, 3.0)

    first, second = points(store, "softmax")

    assert (first.group, first.source, second.source) == ("train", "run0", "run1")
    assert (first.runs, first.time_ns) == (2, START_NS)
    assert second.revision == f"{1:040x}"
    assert first.machine == (("architecture", "90"),)
    assert {key: value.value for key, value in first.values.items()} == {(*SOFTMAX, "total"): 600.0}


@pytest.mark.parametrize(("metric", "value"), [("mean", 300.0), ("min", 100.0), ("p5", 100.0)])
def test_other_metrics_are_those_of_all_calls(store: Store, metric: str, value: float) -> None:
    add_run(store, 0, 1.0, 3.0)

    (point,) = points(store, "softmax", metric=metric)

    assert point.values[*SOFTMAX, metric].value == pytest.approx(value, rel=2e-3)


def test_without_paths_all_count_by_their_share(store: Store) -> None:
    add_run(store, 0, 1.0)

    (point,) = points(store)

    shares = {"/".join(path): value.share for (path, _, _), value in point.values.items()}
    assert shares == {
        "fwd": 1.0,
        "fwd/mul": pytest.approx(10 / 11),
        "fwd/softmax": pytest.approx(1 / 11),
    }


def test_names_that_differ_by_running_numbers_are_one_series(store: Store) -> None:
    for run, number in enumerate((3, 7)):
        facts = {"start_time_ns": START_NS + run * DAY_NS}
        profile = profile_of_times({f"triton_poi_fused_add_{number}": [100.0]}, provenance=facts)
        add(store, Path(store.uri).parent / f"run{run}", profile)

    keys = [set(point.values) for point in points(store)]

    assert keys == [{(("triton_poi_fused_add",), 0, "total")}] * 2


def test_a_step_is_found_and_quarantined_paths_never_fail(store: Store) -> None:
    for run in range(16):
        noise = 1.0 + 0.001 * (run % 3)
        add_run(store, run, *([noise * (1.1 if run >= 8 else 1.0)] * 2))

    history = history_of(points(store, "fwd/*"), Policy(), acknowledged={})
    quarantined = Policy(quarantine=("softmax",))
    calm = history_of(points(store, "softmax", policy=quarantined), Policy(), acknowledged={})

    assert [[step.at for step in trace.steps] for trace in history.traces] == [[8], [8]]
    assert len(history.failing) == 2
    assert not calm.failing


def test_a_path_that_several_globs_match_is_one_series(store: Store) -> None:
    add_run(store, 0, 1.0)

    (found,) = points(store, "softmax", "fwd/*")

    assert sorted(path for path, _, _ in found.values) == [("fwd", "mul"), SOFTMAX[0]]


def test_a_run_in_several_selections_counts_once(store: Store) -> None:
    for run in range(2):
        add_run(store, run, 1.0, 3.0)
    words = [f"{store.uri}?rank=0", store.uri, f"{store.uri}/?rank=1 or run='run1'"]
    sources = Sources.named(words, BaselineStore(Path(store.uri).parent / ".proton"))

    found = list(sources.points(Followed(Policy())))

    assert [(each.source, each.runs) for each in found] == [("run0", 1), ("run1", 1)]
    assert list(sources.left_out) == words[1:]
    assert "2 of its runs were named before" in sources.left_out[words[1]]


@pytest.mark.parametrize(("path", "metric"), [("nothing", ""), ("softmax", "cycles")])
def test_unknown_paths_and_metrics_are_errors_of_the_caller(
    store: Store, path: str, metric: str
) -> None:
    add_run(store, 0, 1.0)

    with pytest.raises(UsageError):
        points(store, path, metric=metric)

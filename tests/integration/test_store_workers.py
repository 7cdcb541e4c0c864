"""Workers of a Dask cluster give the answers of one process, whatever happens to them."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.dask_cluster import DaskCluster, running

from proton_bench.cli import main
from proton_bench.errors import ProfileFormatError, UsageError

pytest.importorskip("deltalake", reason="needs the extra store")
distributed = pytest.importorskip("distributed", reason="needs the extra fleet")

DAYS, JOBS = 3, ("train", "serve")


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskCluster]:
    with running(4) as cluster:
        yield cluster


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """Two ranks of two jobs on three days, each with its own commit."""
    from fakes.fleet import DAY_NS, START_NS, add, ranked

    from proton_bench.store.store import Store

    store, dice = Store.create(tmp_path / "store"), np.random.default_rng(4)
    for day in range(DAYS):
        for job in JOBS:
            ranks = [
                ranked(rank, dice.lognormal(5.0, 1.0, 50), start_time_ns=START_NS + day * DAY_NS)
                for rank in range(2)
            ]
            add(store, tmp_path / f"{job}/{day}", *ranks, job=job)
    return store


def questions() -> list[Any]:
    from proton_bench.store.questions import Question

    return [
        Question("fwd/*", by=("path", "job", "run")),
        Question("fwd/softmax", by=("rank",), where="job = 'train'"),
        Question("fwd", by=(), where="date = (SELECT max(date) FROM profiles)"),
        Question("fwd", where="rank = 99"),
    ]


def test_answers_are_equal_bit_by_bit_although_a_worker_dies(
    store: Any, cluster: DaskCluster
) -> None:
    from proton_bench.store.questions import path_series
    from proton_bench.store.workers import workers_of

    snapshot, victim = store.snapshot(), cluster.workers[0]
    with workers_of(cluster.address) as workers, ThreadPoolExecutor(1) as pool:
        found = [workers.path_series(snapshot, question) for question in questions()]
        # Its tasks are begun and never done.
        os.kill(victim.pid, signal.SIGSTOP)
        late = pool.submit(workers.path_series, snapshot, questions()[0])
        with distributed.Client(cluster.address, set_as_default=False) as observer:
            while not observer.processing().get(cluster.addresses[0]):
                assert not late.done()
        victim.kill()
        found.append(late.result())

    alone = [path_series(snapshot, question) for question in (*questions(), questions()[0])]
    assert [len(table) for table in alone] == [DAYS * len(JOBS) * 2, 2, 1, 0, len(alone[0])]
    assert [table.equals(other) for table, other in zip(found, alone, strict=True)] == [True] * 5


def test_files_are_merged_by_workers(
    store: Any, cluster: DaskCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fakes.fleet import add, ranked

    from proton_bench.store.questions import path_series
    from proton_bench.store.upkeep import check

    for job in JOBS:
        add(store, tmp_path / f"{job}/more", ranked(7), job=job)
    before = path_series(store.snapshot(), questions()[0])
    assert len(store.table("samples").file_uris()) == (DAYS + 1) * len(JOBS)

    assert main(["store", "compact", store.uri, "--scheduler", cluster.address]) == 0

    assert "files are now" in capsys.readouterr().out
    assert len(store.table("samples").file_uris()) == DAYS * len(JOBS)
    assert path_series(store.snapshot(), questions()[0]).equals(before)
    assert check(store) == {}


def test_an_error_of_a_worker_is_that_of_the_store(store: Any, cluster: DaskCluster) -> None:
    from proton_bench.store.workers import workers_of

    Path(store.table("samples").file_uris()[0]).unlink()

    with (
        pytest.raises(ProfileFormatError, match="cannot be read"),
        workers_of(cluster.address) as workers,
    ):
        workers.path_series(store.snapshot(), questions()[0])


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x", "tcp://a:b", ""])
def test_an_address_without_a_scheduler_is_wrong_usage(address: str) -> None:
    from proton_bench.store.workers import workers_of

    with pytest.raises(UsageError, match="scheduler"), workers_of(address):
        pass
    gc.collect()  # nothing is left that would fail later

"""Workers of a Dask cluster give the answers of one process, whatever happens to them."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from fakes.dask_cluster import DaskCluster, has_namespaces, running

from proton_bench.cli import main
from proton_bench.errors import ProfileFormatError, UsageError

pytest.importorskip("deltalake", reason="needs the extra store")
pytest.importorskip("distributed", reason="needs the extra fleet")

DAYS, JOBS, RANKS = 2, ("train", "serve"), 3
ADDRESS = "DASK_SCHEDULER_ADDRESS"
# Each output ends with its exit code.
PROGRAM = """
import json, sys
from proton_bench.cli import main
for words in json.load(sys.stdin):
    code = main(words)
    print(f"exit code {code}", flush=True)
"""


def filled(store: Any, folder: Path) -> Any:
    """Return a store with ranks of two jobs on two days, each with its own commit."""
    from fakes.fleet import DAY_NS, START_NS, add, ranked

    dice = np.random.default_rng(4)
    for day in range(DAYS):
        for job in JOBS:
            start_ns = START_NS + day * DAY_NS
            ranks = [
                ranked(rank, dice.lognormal(5.0, 1.0, 50), start_time_ns=start_ns)
                for rank in range(RANKS)
            ]
            add(store, folder / f"{job}/{day}", *ranks, job=job)
    return store


@pytest.fixture
def store(tmp_path: Path) -> Any:
    from proton_bench.store.store import Store

    return filled(Store.create(tmp_path / "store"), tmp_path)


@pytest.fixture(scope="module")
def two_workers() -> Iterator[DaskCluster]:
    with running(machines=False) as cluster:
        for _ in range(2):
            cluster.add_worker()
        yield cluster


@pytest.fixture
def cluster(two_workers: DaskCluster) -> Iterator[DaskCluster]:
    """Two workers, which every process of this test asks."""
    with patch.dict(os.environ, {ADDRESS: two_workers.address}):
        yield two_workers


def questions(place: str, folder: Path) -> list[list[str]]:
    """Return one command line for each way to ask about a store."""
    (folder / "written").mkdir(exist_ok=True)
    days = [f"{place}?job = 'train' AND run = '{day}'" for day in range(DAYS)]
    return [
        ["store", "path", place, "fwd/*", "--by", "path,job,run", "--json"],
        ["diff", days[0], days[1], "-m", "p95_time/us", "--json"],
        ["merge", "--stragglers", days[1], "--json"],
        ["history", place, "--path", "fwd/*", "--json"],
        ["store", "export", days[0], "-o", str(folder / "written/sum.proton")],
    ]


def asked(
    words: Sequence[Sequence[str]],
    folder: Path,
    enter: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process that carries out command lines, with its output in a file."""
    with (folder / "words").open("w") as file:
        json.dump(words, file)
    with (folder / "words").open() as given, (folder / "said").open("wb") as said:
        return subprocess.Popen(
            [*enter, sys.executable, "-c", PROGRAM],
            stdin=given,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )


def answers(folder: Path) -> dict[str, bytes]:
    """Return what the process printed, and wrote."""
    files = [folder / "said", *sorted((folder / "written").iterdir())]
    found = {file.name: file.read_bytes() for file in files}
    assert found["said"].count(b"exit code 0\n") == found["said"].count(b"exit code"), found["said"]
    return found


def test_answers_are_those_of_one_process_although_a_worker_dies(
    store: Any, tmp_path: Path
) -> None:
    words = questions(store.uri, tmp_path)
    assert asked(words, tmp_path).wait() == 0
    expected = answers(tmp_path)

    with running(machines=has_namespaces()) as cluster:
        victim = cluster.add_worker(stops=True)
        for _ in range(2):
            cluster.add_worker()
        client = asked(words, tmp_path, cluster.enter, {ADDRESS: cluster.address})
        os.waitid(os.P_PID, victim.pid, os.WSTOPPED)
        victim.kill()
        assert client.wait() == 0

    assert victim.returncode == -signal.SIGKILL
    assert answers(tmp_path) == expected


def test_workers_read_object_stores(tmp_path: Path) -> None:
    pytest.importorskip("moto", reason="needs the extra test")
    from fakes.object_store import BUCKET, served

    from proton_bench.store.store import Store

    with served() as environment, patch.dict(os.environ, environment):
        place = f"s3://{BUCKET}/fleet"
        filled(Store.create(place), tmp_path)
        words = questions(place, tmp_path)[:2]
        assert asked(words, tmp_path).wait() == 0
        expected = answers(tmp_path)
        with running(machines=False) as cluster:
            cluster.add_worker()
            assert asked(words, tmp_path, (), {ADDRESS: cluster.address}).wait() == 0

    assert answers(tmp_path) == expected


def test_files_are_merged_by_workers(
    store: Any, cluster: DaskCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fakes.fleet import add, ranked

    from proton_bench.store.questions import Question, path_series
    from proton_bench.store.upkeep import check

    question = Question("fwd/*", by=("path", "job", "run"))
    for job in JOBS:
        add(store, tmp_path / f"{job}/more", ranked(7), job=job)
    before = path_series(store.snapshot(), question)
    assert len(store.table("samples").file_uris()) == (DAYS + 1) * len(JOBS)

    assert main(["store", "maintain", store.uri]) == 0

    assert "files became" in capsys.readouterr().out
    assert len(store.table("samples").file_uris()) == DAYS * len(JOBS)
    assert path_series(store.snapshot(), question).equals(before)
    assert check(store) == {}


def test_a_store_that_is_made_anew_is_read_anew(
    store: Any, cluster: DaskCluster, tmp_path: Path
) -> None:
    from fakes.fleet import add, ranked

    from proton_bench.store.questions import Question, path_series
    from proton_bench.store.store import Store

    place = tmp_path / "again"
    found = []
    for time in (1.0, 2.0):
        add(Store.create(place), tmp_path / f"{time}", ranked(0, [time]))
        snapshot = Store.open(place).snapshot()
        found += path_series(snapshot, Question("fwd/softmax"))["total"].to_pylist()
        place.rename(tmp_path / f"was{time}")

    assert found == [1.0, 2.0]


def test_an_error_of_a_worker_is_that_of_the_store(store: Any, cluster: DaskCluster) -> None:
    from proton_bench.store.questions import Question, path_series

    Path(store.table("samples").file_uris()[0]).unlink()

    with pytest.raises(ProfileFormatError, match="cannot be read"):
        path_series(store.snapshot(), Question("fwd/*"))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x"])
def test_an_address_without_a_scheduler_is_wrong_usage(address: str) -> None:
    from proton_bench.store import workers

    with (
        patch.dict(os.environ, {ADDRESS: address}),
        patch.object(workers, "_PATIENCE_S", 1),
        pytest.raises(UsageError, match=f"scheduler.*{ADDRESS}"),
        workers.open_workers(),
    ):
        pass
    gc.collect()  # nothing is left that would fail later

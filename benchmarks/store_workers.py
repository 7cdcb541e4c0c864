"""Questions about a store on 1 to 4 Dask workers: python -m benchmarks.store_workers.

The fleet is that of benchmarks.store, with one partition for each ten runs. Each worker has one
core, as far as there are so many. A question is asked of all workers, and each answer compared with
that of this process.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import distributed

from benchmarks.interleaved import median, print_machine, print_row
from benchmarks.store import FIRST_NS, FLEET_ROWS, add_runs, cut, written
from proton_bench.store.adding.ingest import Labels, add_files, find_files
from proton_bench.store.questions import Question, path_series
from proton_bench.store.store import Store
from proton_bench.store.upkeep import compact
from proton_bench.store.workers import SCHEDULER_VARIABLE

QUESTION = Question("GPT2LMHeadModel/*", by=("run", "rank"))
COUNTS = (1, 2, 4)
ASKS = 3


def filled(folder: Path, ranks: int, runs: int) -> Store:
    """Return a compacted store with so many runs."""
    store = Store.create(folder / "fleet")
    written(folder / "run", cut(FLEET_ROWS), ranks, start_ns=FIRST_NS, seed=0)
    add_files(store, find_files([folder / "run"]), Labels("train", "run0"))
    add_runs(store, range(1, runs))
    compact(store, reader_hours=0)
    return store


def pin(worker: int) -> None:
    """Run this process on one core; DuckDB then has one thread."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[worker % len(cores)]})


@contextmanager
def cluster_of(workers: int) -> Iterator[distributed.Client]:
    """Yield a client of a scheduler with so many workers."""
    with (
        distributed.LocalCluster(
            workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        for number, address in enumerate(client.nthreads()):
            client.run(pin, number, workers=[address])
        with patch.dict(os.environ, {SCHEDULER_VARIABLE: client.scheduler.address}):
            yield client


def measure(store: Store) -> None:
    """Print how long the question takes with each number of workers.

    Processor times say what it takes on idle cores: that of the busiest worker, and after it that
    of this process, which chooses profiles and makes the answer.
    """
    snapshot = store.snapshot()
    expected = path_series(snapshot, QUESTION)
    for count in COUNTS:
        costs = []
        with cluster_of(count) as client:
            for _ in range(1 + ASKS):  # the first one loads the libraries
                before, begin = client.run(time.process_time), time.perf_counter()
                own = time.process_time()
                assert path_series(snapshot, QUESTION).equals(expected)
                own, wall = time.process_time() - own, time.perf_counter() - begin
                after = client.run(time.process_time)
                costs.append((wall, max(after[each] - before[each] for each in after), own))
        wall, busiest, own = (median(each).middle for each in zip(*costs[1:], strict=True))
        figures = f"{wall:.2f} s   busiest worker {busiest:.2f} s, this process {own:.2f} s"
        print_row(f"{count} workers, {len(expected)} lines", figures)


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=100)
    parser.add_argument("--runs", type=int, default=80)
    options = parser.parse_args()
    print_machine()
    with TemporaryDirectory() as folder:
        measure(filled(Path(folder), options.ranks, options.runs))


if __name__ == "__main__":
    main()

"""Questions about a store on 1 to 4 Dask workers: python -m benchmarks.store_workers.

The fleet is that of benchmarks.store, with one partition for each ten runs, or a store that is
there. Each worker has one core, as far as there are so many. Two questions are asked of all
workers, and the answers compared with those of this process: a short one, and a wide one, which
needs the sketches of several call paths of each profile.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import distributed

from benchmarks.interleaved import median, print_machine, print_row
from benchmarks.store import FIRST_NS, FLEET_ROWS, add_runs, cut, written
from proton_bench.store.adding.ingest import Labels, add_files, find_files
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.questions import Question, path_series
from proton_bench.store.store import Store
from proton_bench.store.upkeep import compact
from proton_bench.store.workers import SCHEDULER_VARIABLE

QUESTIONS = {
    "short": Question("GPT2LMHeadModel/*", by=("run", "rank")),
    "wide": Question("*aten::mul", by=("run", "rank")),
}
COUNTS = (0, 1, 2, 4)


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
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        for number, address in enumerate(client.nthreads()):
            client.run(pin, number, workers=[address])
        with patch.dict(os.environ, {SCHEDULER_VARIABLE: client.scheduler.address}):
            yield client


def most_memory() -> float:
    """Return the most GiB that this process has had in memory; what forked it does not count."""
    words = Path("/proc/self/status").read_text().split()
    return int(words[words.index("VmHWM:") + 1]) / 2**20


def cost(ask: Callable[[], pa.Table], client: distributed.Client | None) -> list[float]:
    """Return the wall time of a question, and the processor time of the busiest worker and here."""
    before = client.run(time.process_time) if client else {}
    own, begin = time.process_time(), time.perf_counter()
    ask()
    wall, own = time.perf_counter() - begin, time.process_time() - own
    after = client.run(time.process_time) if client else {}
    return [wall, max((after[each] - before[each] for each in after), default=0.0), own]


def measure(store: Store, asks: int) -> None:
    """Print how long the questions take here, and with each number of workers.

    Processor times say what it takes on idle cores: that of the busiest worker, and that of this
    process, which chooses profiles and makes the answer.
    """
    snapshot = store.snapshot()
    for name, question in QUESTIONS.items():
        ask = partial(path_series, snapshot, question)
        expected = ask()
        for count in COUNTS:
            with cluster_of(count) if count else nullcontext() as client:
                assert ask().equals(expected)  # this one loads the libraries
                costs = [cost(ask, client) for _ in range(asks)]
                memory = max(client.run(most_memory).values()) if client else most_memory()
            wall, busiest, own = (median(each).middle for each in zip(*costs, strict=True))
            figures = f"{wall:.2f} s   busiest {busiest:.2f} s, here {own:.2f} s   {memory:.2f} GiB"
            print_row(f"{name}, {count} workers, {len(expected)} lines", figures)


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=100)
    parser.add_argument("--runs", type=int, default=80)
    parser.add_argument("--asks", type=int, default=3)
    parser.add_argument("--store", help="a store that is there, instead of a new one")
    options = parser.parse_args()
    print_machine()
    if options.store:
        measure(Store.open(options.store), options.asks)
        return
    with TemporaryDirectory() as folder:
        measure(filled(Path(folder), options.ranks, options.runs), options.asks)


if __name__ == "__main__":
    main()

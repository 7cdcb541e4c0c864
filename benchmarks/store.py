"""A store of a fleet: python -m benchmarks.store [--ranks 1000] [--runs 200] [--folder FOLDER].

Files are made from a real profile, a training step of a transformer, cut to some rows and with
noise on every time. First the rate at which they are added. Then a fleet: the files of one run are
added, and its tables again for the other runs, with noise of their own; and questions about all of
them, before and after compaction, each in a fresh connection. What was written lies in the page
cache.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.interleaved import median, print_machine, print_row, rounds
from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.compare.explanation import explain
from proton_bench.analysis.view.names import rows_above
from proton_bench.analysis.view.select import prune
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.metrics.distribution import SKETCH_GAMMA
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.metric import MetricColumn, ValueKind
from proton_bench.model.profile import Profile
from proton_bench.store.adding.ingest import Labels, add_files, find_files
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.engines import pyarrow_compute as pc
from proton_bench.store.questions import Question, path_series
from proton_bench.store.rows import new_batch
from proton_bench.store.schema import BELOW, SCHEMAS, SKETCH, TABLES
from proton_bench.store.selection import Selection
from proton_bench.store.store import Store
from proton_bench.store.upkeep import compact

SOURCE = Path(__file__).parents[1] / "docs/pictures/train.proton"
METRIC = "time (ns)"
PATH = "**/transformer.drop (Dropout)/aten::dropout/aten::mul"
NOISE = 0.03
RATE_FILES, RATE_ROWS, RATE_ROUNDS = 2000, 1000, 3
FLEET_ROWS = 300
DAY_NS = 24 * 3600 * 10**9
FIRST_NS, RUNS_OF_DAY = 20_000 * DAY_NS, 10
ASKS = 5


def cut(rows: int) -> Profile:
    """Return rows of the real profile with a time and those above them, so many."""
    profile = read_profile(SOURCE)
    timed = np.flatnonzero(profile.column(METRIC).valid)
    for count in range(len(timed), 0, -1):
        chosen = np.isin(np.arange(len(profile)), timed[:count])
        keep = rows_above(chosen, profile.subtree_end)
        if keep.sum() <= rows:
            break
    return prune(profile, keep)


def with_noise(profile: Profile, dice: np.random.Generator) -> Profile:
    """Return the profile with each row's times multiplied by a random factor."""
    factors = np.exp(dice.normal(0.0, NOISE, len(profile)))
    columns = {name: _scaled(column, factors) for name, column in profile.columns.items()}
    tables = {name: _moved(table, factors) for name, table in profile.distributions.items()}
    return replace(profile, columns=columns, distributions=tables)


def _scaled(column: MetricColumn, factors: np.ndarray) -> MetricColumn:
    if column.kind is not ValueKind.INT or column.spec.unit != "ns":
        return column
    return replace(column, values=np.rint(column.values * factors).astype("<i8"))


def _moved(table: DistributionTable, factors: np.ndarray) -> DistributionTable:
    own = factors[table.rows]
    steps = np.rint(np.log(own) / math.log(table.gamma) / (1 << table.collapses.astype("i8")))
    of_bucket = np.repeat(steps, np.diff(table.bucket_offsets))
    of_sample = np.repeat(own, np.diff(table.sample_offsets))
    return replace(
        table,
        total=np.rint(table.total * own),
        minimum=table.minimum * own,
        maximum=table.maximum * own,
        samples=(table.samples * of_sample).astype("<f4"),
        bucket_index=(table.bucket_index + of_bucket).astype("<i4"),
    )


def written(folder: Path, profile: Profile, count: int, *, start_ns: int, seed: int) -> list[Path]:
    """Write the files of the ranks of a run."""
    dice = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    files = []
    for rank in range(count):
        facts = profile.provenance.updated(
            rank=rank,
            world_size=count,
            host=f"node{rank // 8}",
            start_time_ns=start_ns + rank,
            end_time_ns=start_ns + 60 * 10**9,
        )
        file = folder / f"rank{rank}.proton"
        write_profile(replace(with_noise(profile, dice), provenance=facts), file)
        files.append(file)
    return files


def measure_rate(folder: Path) -> None:
    """Print how fast files are added, with one process and with one for each core."""
    files = written(folder / "rate", cut(RATE_ROWS), RATE_FILES, start_ns=DAY_NS, seed=0)
    processor: dict[int, list[float]] = {}

    def arm(processes: int) -> Callable[[], float]:
        def add() -> float:
            place = folder / "once"
            shutil.rmtree(place, ignore_errors=True)
            store = Store.create(place)
            begin, used = time.perf_counter(), time.process_time()
            added = add_files(store, files, Labels(), processes=processes)
            seconds = time.perf_counter() - begin
            assert len(added.new) == RATE_FILES
            processor.setdefault(processes, []).append((time.process_time() - used) / RATE_FILES)
            return seconds / RATE_FILES

        return add

    counts = dict.fromkeys((1, os.cpu_count() or 1))
    costs = rounds({str(each): arm(each) for each in counts}, RATE_ROUNDS)
    for count in counts:
        wall, own = median(costs[str(count)]), median(processor[count][1:])
        what = f"add a profile of {RATE_ROWS} rows, {count} processes"
        known = f"processor time of the first {1e3 * own.middle:.1f} ms"
        print_row(what, f"{1e3 * wall.middle:.1f} ms", known)
    sizes = [each.stat().st_size for each in files]
    stored = sum(each.stat().st_size for each in (folder / "once").rglob("*.parquet"))
    print_row(f"bytes of a profile of {RATE_ROWS} rows", f"{stored / RATE_FILES:.0f}")
    print_row("bytes of its file", f"{sum(sizes) / RATE_FILES:.0f}")


def measure_fleet(folder: Path, ranks: int, runs: int) -> None:
    """Print how long a fleet takes to add, to compact and to ask."""
    store, files = Store.create(folder / "fleet"), folder / "run"
    written(files, cut(FLEET_ROWS), ranks, start_ns=FIRST_NS, seed=0)
    begin = time.perf_counter()
    add_files(store, find_files([files]), Labels("train", "run0"), processes=os.cpu_count() or 1)
    seconds = time.perf_counter() - begin
    rate = f"{ranks / seconds:.0f} per s"
    print_row(f"add {ranks} profiles of {FLEET_ROWS} rows", f"{seconds:.1f} s", rate)
    add_runs(store, range(1, runs))
    for what in ("as added", "compacted"):
        stored = sum(os.path.getsize(file) for file in store_files(store))
        print_row(f"{what}: bytes of a profile", f"{stored / ranks / runs:.0f}")
        ask(store, what)
        begin = time.perf_counter()
        compact(store, reader_hours=0)
        print_row("compact", f"{time.perf_counter() - begin:.1f} s")


def store_files(store: Store) -> list[str]:
    """Return the files that readers open."""
    return [file for table in TABLES for file in store.table(table).file_uris()]


def add_runs(store: Store, numbers: range) -> None:
    """Add the only run of a store again, once for each number."""
    with store.snapshot().connect() as reader:
        samples, profiles = (
            reader.table(f"FROM {table}").select(SCHEMAS[table].names)
            for table in ("samples", "profiles")
        )
    for number in numbers:
        add_again(store, samples, profiles, number=number)


def add_again(store: Store, samples: pa.Table, profiles: pa.Table, *, number: int) -> None:
    """Add a run again with other ids, a later start and noise, as its files would be added."""
    start_ns = FIRST_NS + number * DAY_NS // RUNS_OF_DAY
    new = {
        "date": datetime.fromtimestamp(start_ns // 10**9, UTC).date(),
        "batch": new_batch(),
        "run": f"run{number}",
        "time_unix_nano": start_ns,
    }
    for name, table in (("samples", noisy(samples, number)), ("profiles", profiles)):
        columns = {column: table[column] for column in table.column_names}
        columns["profile_id"] = pc.utf8_replace_slice(table["profile_id"], 0, 4, f"{number:04x}")
        for column in new.keys() & columns.keys():
            value = pa.scalar(new[column], SCHEMAS[name].field(column).type)
            columns[column] = pa.repeat(value, len(table))
        store.append(name, pa.table(columns).cast(SCHEMAS[name]))


def noisy(samples: pa.Table, seed: int) -> pa.Table:
    """Return samples with each row's times multiplied by a random factor."""
    samples = samples.combine_chunks()
    columns = {name: samples[name].combine_chunks() for name in samples.column_names}
    factors = np.exp(np.random.default_rng(seed).normal(0.0, NOISE, len(samples)))
    for name in ("value", "min", "max"):
        columns[name] = pc.round(pc.multiply(columns[name], pa.array(factors)))
    below = {name: columns["below"].field(name) for name in BELOW.names}
    for name in ("value", "min", "max"):
        below[name] = pc.round(pc.multiply(below[name], pa.array(factors)))
    columns["below"] = pa.StructArray.from_arrays(
        list(below.values()), fields=list(BELOW), mask=columns["below"].is_null()
    )
    collapses, zeros, index, count = (columns["sketch"].field(each) for each in range(4))
    lengths = np.diff(index.offsets.to_numpy())
    steps = np.rint(np.log(factors) / math.log(SKETCH_GAMMA)).astype("<i4")
    moved = pa.array(index.values.to_numpy() + np.repeat(steps, lengths))
    columns["sketch"] = pa.StructArray.from_arrays(
        [collapses, zeros, pa.ListArray.from_arrays(index.offsets, moved), count],
        fields=list(SKETCH),
        mask=columns["sketch"].is_null(),
    )
    return pa.table(columns)


def ask(store: Store, what: str) -> None:
    """Print how long questions take, the first time and later, and their processor time."""
    asked: dict[str, Callable[[], int]] = {
        name: lambda question=question: len(path_series(store.snapshot(), question))
        for name, question in questions()
    }
    asked["what changed from the first run to the last"] = lambda: movers(store)
    for name, answer in asked.items():
        costs, used = [], []
        for _ in range(ASKS):
            begin, own = time.perf_counter(), time.process_time()
            lines = answer()
            costs.append(time.perf_counter() - begin)
            used.append(time.process_time() - own)
        later = f"later {median(costs[1:]).middle:.2f} s, processor {median(used).middle:.2f} s"
        print_row(f"{what}: {name}, {lines} lines", f"{costs[0]:.2f} s", later)


def movers(store: Store) -> int:
    """Compare the first run with the last, and return how many rows that has."""
    with store.snapshot().connect() as reader:
        query = "SELECT min_by(run, time_unix_nano), max_by(run, time_unix_nano) FROM profiles"
        (runs,) = reader.rows(query)
    sides = [Selection(store.uri, f"run = '{run}'").runs(quantiles=False) for run in runs]
    comparison = compare(*sides, CompareOptions())
    assert explain(comparison) is not None
    return len(comparison)


def questions() -> Iterator[tuple[str, Question]]:
    """Yield questions by their names."""
    yield "one call path by run", Question(PATH, by=("run",))
    yield "one operator by run", Question("aten::mul", by=("run",))
    yield "one call path by rank", Question(PATH, by=("rank",))
    yield "a scope and all below by run", Question("GPT2LMHeadModel/*", by=("run",))
    day = "date = (SELECT max(date) FROM profiles)"
    yield "one operator by rank on one day", Question("aten::mul", by=("rank",), where=day)


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", choices=["rate", "fleet"], help="measure one part alone")
    parser.add_argument("--folder", type=Path, help="where files are written, empty or new")
    options = parser.parse_args()
    print_machine()
    with TemporaryDirectory(dir=options.folder) as folder:
        if options.only != "fleet":
            measure_rate(Path(folder))
        if options.only != "rate":
            measure_fleet(Path(folder), options.ranks, options.runs)


if __name__ == "__main__":
    main()

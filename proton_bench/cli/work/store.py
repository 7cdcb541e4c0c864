"""Carries out the commands of ``proton store``, with their options parsed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import typer

from proton_bench.analysis.query.sql import QueryResult, parsed, query_on
from proton_bench.cli.boundary import warn
from proton_bench.cli.work.query import print_result, stored_runs
from proton_bench.errors import ProfileFormatError, ProtonError, UsageError
from proton_bench.formats.registry import write_profile
from proton_bench.model.profile import Profile
from proton_bench.report.text.result import PathReport
from proton_bench.report.tree.tree import print_report
from proton_bench.store import upkeep
from proton_bench.store.adding.ingest import Labels, add_files, find_files
from proton_bench.store.adding.spool import Spool
from proton_bench.store.policy import read_policy
from proton_bench.store.questions import Question, path_series
from proton_bench.store.retention import retain
from proton_bench.store.selection import EVERYTHING, Selection
from proton_bench.store.store import QUERIED, Store, where_clause
from proton_bench.store.workers import open_workers
from proton_bench.support.console import open_console
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

__all__ = [
    "Asked",
    "add",
    "export",
    "init",
    "list_runs",
    "maintain",
    "path",
    "query",
    "record",
    "watch",
]

_RUNS = """
SELECT min(date) AS date, job, run, sum(coalesce(len(members), 1))::BIGINT AS profiles,
    any_value("commit") AS "commit", any_value(branch) AS branch,
    sum(totals['time (ns)']) / 1e9 AS time_s, count(*) FILTER (partial) AS partial,
    sum(list_sum(map_values(dropped)))::BIGINT AS dropped
FROM profiles {where} GROUP BY job, run ORDER BY min(time_unix_nano), job, run"""


_WATCH_INTERVAL_S = 5.0
_STDERR = 2
# What deltalake's native code prints when a file cannot be written, before the error.
_PANIC = re.compile(
    rb"\n?thread '[^\n]* panicked at .*?\nnote: [^\n]*RUST_BACKTRACE[^\n]*\n", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which call paths are asked for, by which groups, in which metric."""

    glob: str
    by: tuple[str, ...]
    metric: str


def init(place: str) -> None:
    """Make a store; one that exists stays as it is."""
    with _without_panics():
        store = Store.create(place)
    typer.echo(f"the store {visible(store.uri)} is ready: add profiles with `proton store add`")


def add(place: str, files: Sequence[Path], job: str, *, run: str | None) -> int:
    """Add profiles, and return the exit code: 2 if a file could not be read."""
    return _add(Store.open(place), find_files(files), Labels(job, run))


def _add(store: Store, files: Sequence[Path], labels: Labels) -> int:
    with _without_panics():
        added = add_files(store, files, labels, processes=len(os.sched_getaffinity(0)))
    for reason in added.failed.values():
        warn(reason)
    known = f"; {len(added.known)} were there already" if added.known else ""
    typer.echo(f"added {count_text(len(added.new), 'profile')}{known}")
    return UsageError.exit_code if added.failed else 0


def watch(place: str, folder: Path, job: str, *, run: str | None) -> None:
    """Add the files of a spool as they come, all that came between two looks in one commit."""
    store, spool, labels = Store.open(place), Spool(folder), Labels(job, run)
    pause = threading.Event()
    spool.take()
    while True:
        pause.wait(_WATCH_INTERVAL_S)
        if files := spool.take():
            _add(store, files, labels)


def record(place: str, job: str, line: Callable[[Path], Sequence[str]]) -> int:
    """Run a program, add the files of its processes as one run, and return its exit code.

    Args:
        place: The store.
        job: Name of the job; the run is named by the time.
        line: Returns the command that writes the files to a folder.

    Raises:
        UsageError: There is no store.
        OutputError: The store cannot be written; the files stay where a note of the error says.
    """
    store, labels = Store.open(place), Labels(job)  # before the program runs for nothing
    folder = Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%dT%H%M%S-", time.gmtime())))
    code = _run(line(folder))
    try:
        with _without_panics():
            added = add_files(store, find_files([folder]), labels)
    except ProtonError as error:
        error.add_note(f"the files of this run are in {visible(folder)}: add them later")
        raise
    for reason in added.failed.values():
        warn(reason)
    sys.stderr.write(f"proton: added {count_text(len(added.new), 'profile')} to the store\n")
    if not added.failed:
        shutil.rmtree(folder, ignore_errors=True)
    return code


def _run(line: Sequence[str]) -> int:
    """Run a command with our streams, and return its exit code, 128+n after signal n."""
    with subprocess.Popen(line) as child:
        # A terminal sends SIGINT to the child too; others send signals to this process alone.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda received, _: child.send_signal(received))
        code = child.wait()
    return code if code >= 0 else 128 - code


def list_runs(word: str, *, limit: int | None, form: str) -> None:
    """List runs."""
    selection = Selection.named(word)
    sql = _RUNS.format(where=where_clause(selection.condition))
    query(selection.place, sql, limit=limit, form=form)


def query(word: str, sql: str, *, limit: int | None, form: str) -> None:
    """Query a store in SQL; a condition chooses profiles for the tables of `proton query` alone.

    Raises:
        UsageError: The statement is wrong, or there is a condition that it does not use.
        ProfileFormatError: The store is damaged.
    """
    selection, statement = Selection.named(word), parsed(sql, QUERIED)
    if selection.condition != EVERYTHING and not statement.tables:
        raise UsageError(
            f"{word!a} has a condition for tables of single profiles, such as nodes, which the "
            "statement does not name: write the condition into the statement"
        )
    is_named = any(table in sql.casefold() for table in QUERIED)
    with selection.snapshot().connect(sql if is_named else None) as reader:
        runs = stored_runs(selection) if statement.tables else []
        result = query_on(reader.connection, runs, statement, limit=limit, tables=QUERIED)
        print_result(result, runs, sql, form=form)


def path(word: str, asked: Asked, *, limit: int | None, form: str) -> None:
    """Show the values of call paths by group; as JSON or CSV with all columns of the answer.

    Args:
        word: A selection of a store.
        asked: The paths and groups.
        limit: Most lines, None for all.
        form: ``table``, ``json`` or ``csv``.

    Raises:
        UsageError: The selection, the glob or the metric is wrong, or no value is found.
        ProfileFormatError: The store is damaged.
    """
    selection = Selection.named(word)
    question = Question(asked.glob, asked.metric, asked.by, selection.condition)
    found = path_series(selection.snapshot(), question)
    if not len(found):
        raise UsageError(
            f"no profile that {word!a} selects has {asked.metric!a} at {asked.glob!a}: `proton "
            "store ls` lists runs; -m takes a metric's full name, such as 'time (ns)'"
        )
    if form == "table":
        lines = found.to_pylist()
        report = PathReport(lines, question.path, question.by, question.metric, limit)
        print_report(open_console(), report)
        return
    shown = found if limit is None else found.slice(0, limit)
    result = QueryResult(
        tuple(found.column_names),
        tuple(str(kind) for kind in found.schema.types),
        [tuple(row.values()) for row in shown.to_pylist()],
        has_more=len(shown) < len(found),
    )
    print_result(result, (), asked.glob, form=form)


def export(word: str, output: Path) -> None:
    """Write the sum of profiles to a file."""
    profiles = [profile for _, profile in Selection.named(word).profiles()]
    for note in write_profile(Profile.merge(profiles), output):
        warn(note)


def maintain(place: str) -> int:
    """Check, retain and compact a store; of a damaged one name the damage, and return 2."""
    store = Store.open(place)
    damaged = upkeep.check(store)
    for where, why in damaged.items():
        typer.echo(f"DAMAGED {visible(where)}: {visible(why)}")
    if damaged:
        return ProfileFormatError.exit_code
    with _without_panics(), open_workers() as workers:
        retained = retain(store, read_policy(store), datetime.now(UTC).date())
        done = upkeep.compact(store, mapped=workers.map)
    is_same = done.files == done.files_before
    typer.echo(
        f"nothing is damaged; summed {count_text(retained.summed + done.summed, 'profile')}; "
        f"removed {count_text(retained.removed, 'profile')} and the quantiles of "
        f"{count_text(retained.stripped, 'sample')}; {count_text(done.files_before, 'file')} "
        f"{'stay' if is_same else f'became {done.files}'}; removed "
        f"{count_text(done.dead_rows, 'row')} that did not count"
    )
    return 0


@contextmanager
def _without_panics() -> Iterator[None]:
    """Keep standard error back, and leave out of it what the error says in one line."""
    try:
        kept = os.dup(_STDERR)
    except OSError:  # it is closed
        yield
        return
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
            said.seek(0)
            left = _PANIC.sub(b"", said.read())
            while left:
                left = left[os.write(_STDERR, left) :]

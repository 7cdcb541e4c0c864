"""``proton store``: the profiles of many runs in one place."""

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
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.cli.boundary import warn
from proton_bench.cli.commands.query import (
    CsvOption,
    JsonOption,
    print_result,
    read_output,
    stored_runs,
)
from proton_bench.cli.files import output_option, print_reports
from proton_bench.cli.options import JobOption
from proton_bench.errors import ProfileFormatError, ProtonError, UsageError
from proton_bench.store.selection import EVERYTHING, Selection
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

if TYPE_CHECKING:
    from proton_bench.store.adding.ingest import Labels
    from proton_bench.store.store import Store


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

group = typer.Typer(
    help="Keep the profiles of many runs, ranks and revisions in one store, and query them.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_Store = Annotated[
    str,
    typer.Argument(metavar="STORE", help="Folder of the store, or a URL such as s3://bucket/name."),
]
_Selection = Annotated[
    str,
    typer.Argument(
        metavar="STORE[?CONDITION]",
        help="The store, and which profiles count: an SQL condition over the table profiles, such "
        "as \"/fleet?job = 'llama' AND rank < 8\" (default: all).",
    ),
]


@group.command("init")
def init(store: _Store) -> None:
    """Make a store; one that exists stays as it is."""
    from proton_bench.store.store import Store

    with _without_panics():
        made = Store.create(store)
    typer.echo(f"the store {visible(made.uri)} is ready: add profiles with `proton store add`")


@group.command("add")
def add(
    store: _Store,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Profiles of any known format, and folders: with them all recordings in all "
            "folders below.",
        ),
    ],
    job: JobOption = "default",
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="NAME",
            help="The run of the job that the files are of (default: for each file the name of its "
            "folder).",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Add profiles in one commit; those that the job has already are not added again."""
    from proton_bench.store.adding.ingest import Labels, find_files
    from proton_bench.store.store import Store

    return _add(Store.open(store), find_files(files), Labels(job, run))


@group.command("watch")
def watch(
    store: _Store,
    spool: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder that others write profiles to.")
    ],
    job: JobOption = "default",
) -> None:
    """Add profiles as they come to a folder and all folders below, until Ctrl-C.

    The files stay there. One that is the same after 5 seconds is complete.
    """
    from proton_bench.store.adding.ingest import Labels
    from proton_bench.store.adding.spool import Spool
    from proton_bench.store.store import Store

    target, files, labels = Store.open(store), Spool(spool), Labels(job)
    pause = threading.Event()
    files.take()
    while True:
        pause.wait(_WATCH_INTERVAL_S)
        if complete := files.take():
            _add(target, complete, labels)


@group.command("ls")
def list_runs(
    selection: _Selection,
    as_json: JsonOption = False,
) -> None:
    """List the runs of a store."""
    from proton_bench.store.store import where_clause

    chosen, most = read_output(as_json=as_json)
    named = Selection.named(selection)
    sql = _RUNS.format(where=where_clause(named.condition))
    _query(named.place, sql, limit=most, form=chosen)


@group.command("query")
def query(
    selection: _Selection,
    sql: Annotated[
        str,
        typer.Argument(
            metavar='"SQL"',
            help="One statement over the tables profiles, samples, stacks and timelines, and for "
            "single profiles over those of `proton query`.",
        ),
    ],
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Query a store in SQL; a condition chooses the profiles in the tables of `proton query`."""
    chosen, most = read_output(as_json=as_json, as_csv=as_csv)
    _query(selection, sql, limit=most, form=chosen)


@group.command("path")
def path(
    selection: _Selection,
    glob: Annotated[
        str, typer.Argument(metavar="GLOB", help="Call paths, such as 'fwd/**/softmax*'.")
    ],
    by: Annotated[
        str,
        typer.Option(
            metavar="COLUMN[,COLUMN]",
            help="What lines are about: columns of the table profiles, such as run, rank, commit, "
            "date or gpu_uuid, and path for each call path of its own.",
        ),
    ] = "job,run",
    metric: Annotated[
        str, typer.Option("-m", "--metric", metavar="NAME", help="Full name of a metric.")
    ] = "time (ns)",
    as_json: JsonOption = False,
) -> None:
    """Show the values of call paths over runs, ranks, revisions or GPUs."""
    from proton_bench.analysis.query.sql import QueryResult
    from proton_bench.report.text.result import PathReport
    from proton_bench.store.questions import Question, path_series

    chosen, most = read_output(as_json=as_json)
    columns = tuple(name.strip() for name in by.split(",") if name.strip())
    stored = Selection.named(selection)
    question = Question(glob, metric, columns, stored.condition)
    found = path_series(stored.snapshot(), question)
    if not len(found):
        raise UsageError(
            f"no profile that {selection!a} selects has {metric!a} at {glob!a}: `proton "
            "store ls` lists runs; -m takes a metric's full name, such as 'time (ns)'"
        )
    if chosen == "table":
        lines = found.to_pylist()
        report = PathReport(lines, question.path, question.by, question.metric, most)
        print_reports(report)
        return
    shown = found if most is None else found.slice(0, most)
    result = QueryResult(
        tuple(found.column_names),
        tuple(str(kind) for kind in found.schema.types),
        [tuple(row.values()) for row in shown.to_pylist()],
        has_more=len(shown) < len(found),
    )
    print_result(result, (), glob, form=chosen)


@group.command("export")
def export(
    selection: _Selection,
    output: Annotated[
        Path,
        output_option("File to write; its suffix gives the format, such as .proton or .pb.gz."),
    ],
) -> None:
    """Write the sum of profiles to a file of any format."""
    from proton_bench.formats.registry import write_profile
    from proton_bench.model.profile import Profile

    profiles = [profile for _, profile in Selection.named(selection).profiles()]
    for note in write_profile(Profile.merge(profiles), output):
        warn(note)


@group.command("maintain")
def maintain(store: _Store) -> int:
    """Read every file, remove what `policy.toml` in the store does not keep, and merge files.

    If something is damaged, it is named and nothing is changed; the exit code is 2.
    """
    from proton_bench.store import upkeep
    from proton_bench.store.retention import read_policy, retain
    from proton_bench.store.store import Store
    from proton_bench.store.workers import open_workers

    opened = Store.open(store)
    damaged = upkeep.check(opened)
    for where, why in damaged.items():
        typer.echo(f"DAMAGED {visible(where)}: {visible(why)}")
    if damaged:
        return ProfileFormatError.exit_code
    with _without_panics(), open_workers() as workers:
        retained = retain(opened, read_policy(opened), datetime.now(UTC).date())
        done = upkeep.compact(opened, mapped=workers.map)
    is_same = done.files == done.files_before
    typer.echo(
        f"nothing is damaged; summed {count_text(retained.summed + done.summed, 'profile')}; "
        f"removed {count_text(retained.removed, 'profile')} and the quantiles of "
        f"{count_text(retained.stripped, 'sample')}; {count_text(done.files_before, 'file')} "
        f"{'stay' if is_same else f'became {done.files}'}; removed "
        f"{count_text(done.dead_rows, 'row')} that did not count"
    )
    return 0


def _add(store: Store, files: Sequence[Path], labels: Labels) -> int:
    from proton_bench.store.adding.ingest import add_files

    with _without_panics():
        added = add_files(store, files, labels, processes=len(os.sched_getaffinity(0)))
    for reason in added.failed.values():
        warn(reason)
    known = f"; {len(added.known)} were there already" if added.known else ""
    typer.echo(f"added {count_text(len(added.new), 'profile')}{known}")
    return UsageError.exit_code if added.failed else 0


def record(place: str, job: str, line: Callable[[Path], Sequence[str]]) -> int:
    """Run a program, add the files of its processes as one run, and return its exit code.

    Args:
        place: The store.
        job: Name of the job; the run is named by the time.
        line: Returns the command that writes the files to a folder.

    Raises:
        UsageError: The store does not exist.
        OutputError: The store cannot be written; the files stay where a note of the error says.
    """
    from proton_bench.store.adding.ingest import Labels, add_files, find_files
    from proton_bench.store.store import Store

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


def _query(word: str, sql: str, *, limit: int | None, form: str) -> None:
    """Query a store in SQL; a condition chooses profiles for the tables of `proton query` alone.

    Raises:
        UsageError: The statement is wrong, or there is a condition that it does not use.
        ProfileFormatError: The store is damaged.
    """
    from proton_bench.analysis.query.sql import parsed, query_on
    from proton_bench.store.store import QUERIED

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

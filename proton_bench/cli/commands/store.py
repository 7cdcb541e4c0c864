"""``proton store``: the profiles of many runs in one place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.commands.query import (
    CsvOption,
    JsonOption,
    LimitOption,
    read_output,
)
from proton_bench.cli.options import JobOption
from proton_bench.cli.output_file import output_option
from proton_bench.store.workers import SCHEDULER_VARIABLE

__all__ = ["group"]

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
_Run = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="NAME",
        help="The run of the job that the files are of (default: for each file the name of its "
        "folder).",
        show_default=False,
    ),
]
_Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Work on the workers of this Dask scheduler, such as tcp://10.0.0.1:8786; other "
        f"commands take it from {SCHEDULER_VARIABLE}.",
        show_default=False,
    ),
]


@group.command("init")
def init(store: _Store) -> None:
    """Make a store; one that exists stays as it is."""
    from proton_bench.cli.work import store as work

    work.init(store)


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
    run: _Run = None,
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Processes that read files (default: one for each core)."
        ),
    ] = None,
) -> int:
    """Add profiles in one commit; those that the job has already are not added again."""
    from proton_bench.cli.work import store as work

    return work.add(store, files, job, run=run, processes=processes)


@group.command("watch")
def watch(
    store: _Store,
    spool: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder that others write profiles to.")
    ],
    job: JobOption = "default",
    run: _Run = None,
    every: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="Time between two looks; a file that is the same at both is complete.",
        ),
    ] = 5.0,
    once: Annotated[
        bool, typer.Option("--once", help="End after two looks, instead of by Ctrl-C.")
    ] = False,
) -> int:
    """Add profiles as they come to a folder and all folders below; the files stay there."""
    from proton_bench.cli.work import store as work

    return work.watch(store, spool, job, run=run, every_s=every, once=once)


@group.command("ls")
def list_runs(
    selection: _Selection,
    paths: Annotated[
        bool, typer.Option("--paths", help="List call paths instead of runs.")
    ] = False,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    limit: LimitOption = None,
) -> None:
    """List runs, or call paths, of a store."""
    chosen, most = read_output(as_json=as_json, as_csv=as_csv, limit=limit)
    from proton_bench.cli.work import store as work

    work.list_runs(selection, paths=paths, limit=most, form=chosen)


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
    limit: LimitOption = None,
) -> None:
    """Query a store in SQL; a condition chooses the profiles in the tables of `proton query`."""
    chosen, most = read_output(as_json=as_json, as_csv=as_csv, limit=limit)
    from proton_bench.cli.work import store as work

    work.query(selection, sql, limit=most, form=chosen)


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
    scheduler: _Scheduler = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    limit: LimitOption = None,
) -> None:
    """Show the values of call paths over runs, ranks, revisions or GPUs."""
    chosen, most = read_output(as_json=as_json, as_csv=as_csv, limit=limit)
    columns = tuple(name.strip() for name in by.split(",") if name.strip())
    from proton_bench.cli.work import store as work

    _choose(scheduler)
    work.path(selection, work.Asked(glob, columns, metric), limit=most, form=chosen)


@group.command("export")
def export(
    selection: _Selection,
    output: Annotated[
        Path,
        output_option("File to write; its suffix gives the format, such as .proton or .pb.gz."),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="FORMAT", help="Format, as for `proton export`.", show_default=False
        ),
    ] = None,
) -> None:
    """Write the sum of profiles to a file of any format."""
    from proton_bench.cli.work import store as work

    work.export(selection, output, to=to)


@group.command("maintain")
def maintain(store: _Store, scheduler: _Scheduler = None) -> int:
    """Read every file, remove what `policy.toml` in the store keeps no longer, and merge files.

    If something is damaged, it is named and nothing is changed; the exit code is 2.
    """
    from proton_bench.cli.work import store as work

    _choose(scheduler)
    return work.maintain(store)


def _choose(scheduler: str | None) -> None:
    if scheduler is not None:
        os.environ[SCHEDULER_VARIABLE] = scheduler

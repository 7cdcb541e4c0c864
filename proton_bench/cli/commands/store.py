"""``proton store``: the profiles of many runs in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.commands.query import (
    CsvOption,
    JsonOption,
    read_output,
)
from proton_bench.cli.options import JobOption
from proton_bench.cli.output_file import output_option

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
) -> int:
    """Add profiles in one commit; those that the job has already are not added again."""
    from proton_bench.cli.work import store as work

    return work.add(store, files, job, run=run)


@group.command("watch")
def watch(
    store: _Store,
    spool: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder that others write profiles to.")
    ],
    job: JobOption = "default",
    run: _Run = None,
) -> None:
    """Add profiles as they come to a folder and all folders below, until Ctrl-C.

    The files stay there. One that is the same after 5 seconds is complete.
    """
    from proton_bench.cli.work import store as work

    work.watch(store, spool, job, run=run)


@group.command("ls")
def list_runs(
    selection: _Selection,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """List the runs of a store."""
    chosen, most = read_output(as_json=as_json, as_csv=as_csv)
    from proton_bench.cli.work import store as work

    work.list_runs(selection, limit=most, form=chosen)


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
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show the values of call paths over runs, ranks, revisions or GPUs."""
    chosen, most = read_output(as_json=as_json, as_csv=as_csv)
    columns = tuple(name.strip() for name in by.split(",") if name.strip())
    from proton_bench.cli.work import store as work

    work.path(selection, work.Asked(glob, columns, metric), limit=most, form=chosen)


@group.command("export")
def export(
    selection: _Selection,
    output: Annotated[
        Path,
        output_option("File to write; its suffix gives the format, such as .proton or .pb.gz."),
    ],
) -> None:
    """Write the sum of profiles to a file of any format."""
    from proton_bench.cli.work import store as work

    work.export(selection, output)


@group.command("maintain")
def maintain(store: _Store) -> int:
    """Read every file, remove what `policy.toml` in the store keeps no longer, and merge files.

    If something is damaged, it is named and nothing is changed; the exit code is 2.
    """
    from proton_bench.cli.work import store as work

    return work.maintain(store)

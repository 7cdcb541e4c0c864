"""``proton baseline``: stored runs and their names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.options import StoreOption

__all__ = ["group"]

_HELP = {"help_option_names": ["-h", "--help"]}
group = typer.Typer(
    help="Keep runs to compare with: save, promote, list, show, remove and export them.",
    context_settings=dict(_HELP),
)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the baseline, such as main.")]
_Reference = Annotated[
    str, typer.Argument(metavar="NAME[@ID]", help="A baseline, or one entry of it.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


@group.command("save")
def save(
    name: _Name,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", help="Profiles, folders of runs, and runs of stores: STORE?CONDITION."
        ),
    ],
    store: StoreOption = None,
) -> None:
    """Save runs as a candidate; the name still points to the same entry."""
    from proton_bench.cli.work import baselines

    baselines.save(baselines.open_store(store), name, runs)


@group.command("list")
def list_all(store: StoreOption = None, as_json: _Json = False) -> None:
    """List all baselines and candidates."""
    from proton_bench.cli.work import baselines

    baselines.list_all(baselines.open_store(store), as_json=as_json)


@group.command("show")
def show(name: _Reference, store: StoreOption = None, as_json: _Json = False) -> None:
    """Show the entries of a baseline: what they were recorded on, with what, and from where."""
    from proton_bench.cli.work import baselines

    baselines.show(baselines.open_store(store), name, as_json=as_json)


@group.command("promote")
def promote(name: _Reference, store: StoreOption = None) -> None:
    """Make the name point to a candidate, for its device, driver and versions."""
    from proton_bench.cli.work import baselines

    baselines.promote(baselines.open_store(store), name)


@group.command("rm")
def remove(
    name: _Reference,
    candidates: Annotated[
        bool,
        typer.Option(
            "--candidates", help="Remove all entries except those that the name points to."
        ),
    ] = False,
    store: StoreOption = None,
) -> None:
    """Remove a candidate, or a baseline with everything that was saved for it."""
    from proton_bench.cli.work import baselines

    baselines.remove(baselines.open_store(store), name, candidates=candidates)


@group.command("export")
def export(
    name: _Reference,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder to copy to; new or empty.")
    ],
    store: StoreOption = None,
) -> None:
    """Copy the runs of a baseline to a folder, to commit or to send them."""
    from proton_bench.cli.work import baselines

    baselines.export(baselines.open_store(store), name, folder)

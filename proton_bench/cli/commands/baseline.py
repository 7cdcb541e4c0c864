"""``proton baseline``: runs that are kept, and what their names mean."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.gating.options import StoreOption
from proton_bench.cli.output_file import print_bytes
from proton_bench.cli.project import default_store
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.gate.baseline.check import DAMAGED, check_store, repair_store
from proton_bench.gate.baseline.export import export_entry
from proton_bench.gate.baseline.reference import split_reference
from proton_bench.gate.baseline.run_files import read_runs
from proton_bench.gate.baseline.store import BaselineStore
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.baselines import BaselineListing, ListedEntry, baselines_document
from proton_bench.report.tree.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

__all__ = ["group"]

_HELP = {"help_option_names": ["-h", "--help"]}
group = typer.Typer(
    help="Keep runs to compare with: save, promote, list, show, remove, export and check them.",
    no_args_is_help=True,
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
        list[Path], typer.Argument(metavar="RUN...", help="Profiles, or folders of runs.")
    ],
    store: StoreOption = None,
) -> None:
    """Save runs as a candidate; what the name means stays what it was."""
    found = read_runs(runs)
    if not found:
        raise UsageError(f"there is no run in {', '.join(ascii(str(each)) for each in runs)}")
    entry = _store(store).save(name, found)
    typer.echo(entry.reference)
    for run in found:
        if any(run.profile.dropped.values()):
            sys.stderr.write(
                f"proton: warning: {run.source} lost records, so that no gate against it can "
                "find a regression; record it again\n"
            )


@group.command("list")
def list_all(store: StoreOption = None, as_json: _Json = False) -> None:
    """List all baselines and candidates."""
    _print(_listing(_store(store), None), as_json=as_json)


@group.command("show")
def show(name: _Reference, store: StoreOption = None, as_json: _Json = False) -> None:
    """Show the entries of a baseline: what they were recorded on, with what, and from where."""
    baselines = _store(store)
    chosen, id = split_reference(name)
    baselines.catalogue.entry(chosen, id)
    listing = _listing(baselines, chosen)
    kept = [each for each in listing.entries if id in {None, each.entry.id}]
    _print(BaselineListing(kept, {}, with_facts=True), as_json=as_json)


@group.command("promote")
def promote(name: _Reference, store: StoreOption = None) -> None:
    """Make a candidate what the name means on its device, driver and versions."""
    entry, before = _store(store).promote(*split_reference(name))
    if before is not None and before.id == entry.id:
        said = "it was that already"
    else:
        said = f"it was {before.reference}" if before is not None else "it meant nothing before"
    typer.echo(f"{entry.name} is now {entry.reference}; {said}")


@group.command("rm")
def remove(
    name: _Reference,
    candidates: Annotated[
        bool, typer.Option("--candidates", help="Remove everything but what the name means.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Remove a candidate, or a baseline with everything that was saved for it."""
    chosen, id = split_reference(name)
    if candidates and id is not None:
        raise UsageError("--candidates is about all of a baseline; leave out @ID")
    baselines = _store(store)
    gone = baselines.remove_candidates(chosen) if candidates else baselines.remove(chosen, id)
    for each in gone:
        typer.echo(f"removed {chosen}@{each}")


@group.command("check")
def check(
    repair: Annotated[
        bool, typer.Option("--repair", help="Move what is damaged to `damaged` of the store.")
    ] = False,
    store: StoreOption = None,
) -> int:
    """Read every file of the store and name what is damaged; exit code 2 where something is."""
    baselines = _store(store)
    found = repair_store(baselines) if repair else check_store(baselines)
    for place, why in found.items():
        typer.echo(f"{'moved aside' if repair else 'DAMAGED'} {visible(place)}: {visible(why)}")
    if not found:
        typer.echo("nothing is damaged")
    elif repair:
        typer.echo(f"what was damaged is in {visible(str(baselines.folder / DAMAGED))}")
    else:
        typer.echo(f"{count_text(len(found), 'damaged place')}; --repair moves them aside")
    return ProfileFormatError.exit_code if found and not repair else 0


@group.command("export")
def export(
    name: _Reference,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to; it must be empty or not be there.")
    ],
    store: StoreOption = None,
) -> None:
    """Copy the runs of a baseline to a folder, to commit or to send them."""
    baselines = _store(store)
    chosen, id = split_reference(name)
    if id is None:
        promoted = baselines.catalogue.promoted(chosen)
        entry = promoted[0][1] if promoted else baselines.catalogue.entry(chosen)
    else:
        entry = baselines.catalogue.entry(chosen, id)
    for file in export_entry(baselines.catalogue, entry, folder):
        typer.echo(visible(file))


def _store(folder: Path | None) -> BaselineStore:
    return BaselineStore(folder or default_store())


def _listing(store: BaselineStore, name: str | None) -> BaselineListing:
    """Return the entries of a name or of all; what is corrupt is told and costs no other."""
    names = store.catalogue.names() if name is None else [name]
    promoted: set[str] = set()
    problems = store.catalogue.unreadable()
    for each in names:
        try:
            promoted |= {entry.id for _, entry in store.catalogue.promoted(each)}
        except ProfileFormatError as error:
            problems[each] = str(error)
    entries = [ListedEntry(each, each.id in promoted) for each in store.catalogue.entries(name)]
    return BaselineListing(entries, problems)


def _print(listing: BaselineListing, *, as_json: bool) -> None:
    if as_json:
        print_bytes(encode_document(baselines_document(listing)))
    else:
        print_report(open_console(), listing)

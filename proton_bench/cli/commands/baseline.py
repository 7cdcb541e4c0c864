"""``proton baseline``: stored runs and their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.cli.boundary import warn
from proton_bench.cli.files import print_document, print_reports
from proton_bench.cli.options import StoreOption, default_store
from proton_bench.errors import ProfileFormatError, UsageError

if TYPE_CHECKING:
    from proton_bench.gate.baselines import BaselineStore


_HELP = {"help_option_names": ["-h", "--help"]}
group = typer.Typer(
    help="Keep runs to compare with: save, promote, list, show and remove them.",
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
    from proton_bench.gate.baselines import read_recorded

    found = read_recorded(runs)
    if not found:
        raise UsageError(f"there is no run in {', '.join(map(ascii, runs))}")
    entry = _opened(store).save(name, found)
    typer.echo(entry.reference)
    for run in found:
        if any(run.profile.dropped.values()):
            warn(
                f"{run.source} lost records, so a gate against it cannot find a regression; record "
                "it again"
            )


@group.command("list")
def list_all(store: StoreOption = None, as_json: _Json = False) -> None:
    """List all baselines and candidates."""
    opened = _opened(store)
    _print(opened, opened.names(), as_json=as_json)


@group.command("show")
def show(name: _Reference, store: StoreOption = None, as_json: _Json = False) -> None:
    """Show the entries of a baseline: what they were recorded on, and with what."""
    from proton_bench.gate.baselines import split_reference

    opened = _opened(store)
    chosen, id = split_reference(name)
    opened.entry(chosen, id)
    _print(opened, [chosen], as_json=as_json, id=id, with_facts=True)


@group.command("promote")
def promote(name: _Reference, store: StoreOption = None) -> None:
    """Make the name point to a candidate."""
    from proton_bench.gate.baselines import split_reference

    entry, before = _opened(store).promote(*split_reference(name))
    if before is None:
        earlier = "it was unset before"
    elif before.id == entry.id:
        earlier = "it was already"
    else:
        earlier = f"it was {before.reference}"
    typer.echo(f"{entry.name} is now {entry.reference}; {earlier}")


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
    from proton_bench.gate.baselines import split_reference

    chosen, id = split_reference(name)
    if candidates and id is not None:
        raise UsageError("--candidates is for a whole baseline; leave @ID out")
    opened = _opened(store)
    gone = opened.remove_candidates(chosen) if candidates else opened.remove(chosen, id)
    for entry in gone:
        typer.echo(f"removed {entry.reference}")


def _opened(folder: Path | None) -> BaselineStore:
    """Return the store in a folder; None means that of the project."""
    from proton_bench.gate.baselines import BaselineStore

    return BaselineStore(folder or default_store())


def _print(
    store: BaselineStore,
    names: Sequence[str],
    *,
    as_json: bool,
    id: str | None = None,
    with_facts: bool = False,
) -> None:
    """Print the entries of these names, or the one with an id; damaged ones are reported."""
    from proton_bench.report.text.baselines import (
        BaselineListing,
        ListedEntry,
        baselines_document,
    )

    entries: list[ListedEntry] = []
    problems: dict[str, str] = {}
    for name in names:
        promoted = None
        try:
            promoted = store.promoted(name)
        except ProfileFormatError as error:
            problems[name] = str(error)
        for entry in store.entries(name):
            try:
                listed = ListedEntry(entry, entry.first_profile(), entry == promoted)
            except ProfileFormatError as error:
                problems[entry.reference] = str(error)
            else:
                entries.append(listed)
    if with_facts:
        entries = [listed for listed in entries if id in {None, listed.entry.id}]
    listing = BaselineListing(entries, problems, with_facts=with_facts)
    if as_json:
        print_document(baselines_document(listing))
    else:
        print_reports(listing)

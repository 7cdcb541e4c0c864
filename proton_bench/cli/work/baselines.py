"""Carries out the commands of ``proton baseline``, with their options parsed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from proton_bench.cli.files import print_bytes
from proton_bench.cli.options import default_store
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.gate.baselines import BaselineStore, read_recorded, split_reference
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.baselines import BaselineListing, ListedEntry, baselines_document
from proton_bench.report.tree.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import visible

__all__ = ["export", "list_all", "open_store", "promote", "remove", "save", "show"]


def open_store(folder: Path | None) -> BaselineStore:
    """Return the store in a folder; None means that of the project."""
    return BaselineStore(folder or default_store())


def save(store: BaselineStore, name: str, words: Sequence[str]) -> None:
    """Save runs as a candidate; the name still points to the same entry."""
    found = read_recorded(words)
    if not found:
        raise UsageError(f"there is no run in {', '.join(map(ascii, words))}")
    entry = store.save(name, found)
    typer.echo(entry.reference)
    for run in found:
        if any(run.profile.dropped.values()):
            sys.stderr.write(
                f"proton: warning: {run.source} lost records, so a gate against it cannot find a "
                "regression; record it again\n"
            )


def list_all(store: BaselineStore, *, as_json: bool) -> None:
    """List all baselines and candidates."""
    _print(_listing(store, None), as_json=as_json)


def show(store: BaselineStore, name: str, *, as_json: bool) -> None:
    """Show the entries of a baseline: what they were recorded on, with what, and from where."""
    chosen, id = split_reference(name)
    store.entry(chosen, id)
    listing = _listing(store, chosen)
    kept = [each for each in listing.entries if id in {None, each.entry.id}]
    _print(BaselineListing(kept, {}, with_facts=True), as_json=as_json)


def promote(store: BaselineStore, name: str) -> None:
    """Make the name point to a candidate, for its device, driver and versions."""
    entry, before = store.promote(*split_reference(name))
    if before is not None and before.id == entry.id:
        said = "it was already"
    else:
        said = f"it was {before.reference}" if before is not None else "it was unset before"
    typer.echo(f"{entry.name} is now {entry.reference}; {said}")


def remove(store: BaselineStore, name: str, *, candidates: bool) -> None:
    """Remove a candidate, or a baseline with everything that was saved for it."""
    chosen, id = split_reference(name)
    if candidates and id is not None:
        raise UsageError("--candidates is for a whole baseline; leave @ID out")
    gone = store.remove_candidates(chosen) if candidates else store.remove(chosen, id)
    for each in gone:
        typer.echo(f"removed {each.reference}")


def export(store: BaselineStore, name: str, folder: Path) -> None:
    """Copy the runs of a baseline to a folder, to commit or to send them."""
    chosen, id = split_reference(name)
    promoted = store.promoted(chosen) if id is None else None
    for file in store.export(promoted or store.entry(chosen, id), folder):
        typer.echo(visible(file))


def _listing(store: BaselineStore, name: str | None) -> BaselineListing:
    """Return the entries of a name or of all; damaged ones are reported."""
    entries: list[ListedEntry] = []
    problems: dict[str, str] = {}
    for each in store.names() if name is None else [name]:
        promoted = None
        try:
            promoted = store.promoted(each)
        except ProfileFormatError as error:
            problems[each] = str(error)
        for entry in store.entries(each):
            try:
                listed = ListedEntry(entry, entry.first_profile(), entry == promoted)
            except ProfileFormatError as error:
                problems[entry.reference] = str(error)
            else:
                entries.append(listed)
    return BaselineListing(entries, problems)


def _print(listing: BaselineListing, *, as_json: bool) -> None:
    if as_json:
        print_bytes(encode_document(baselines_document(listing)))
    else:
        print_report(open_console(), listing)

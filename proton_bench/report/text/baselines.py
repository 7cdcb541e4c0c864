"""Baselines of a store, and the entries of one, as text and as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.gate.baselines import Entry, revision_of
from proton_bench.gate.machine import Tier, facts_of
from proton_bench.model.profile import Profile
from proton_bench.report.words.edge import DIM, HEADING, WARNING
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text

_SCHEMA = "proton_bench.baselines"
_VERSION = (1, 0)


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """An entry and its state.

    Attributes:
        entry: The entry.
        profile: That of its first run.
        is_promoted: Whether its name points to it.
    """

    entry: Entry
    profile: Profile
    is_promoted: bool

    @property
    def state(self) -> str:
        """Return "baseline" or "candidate"."""
        return "baseline" if self.is_promoted else "candidate"

    @property
    def facts(self) -> list[tuple[Tier, str, str]]:
        """Tier, name and value of what is known about device, driver and tools."""
        found = facts_of(self.profile).items()
        return sorted((tier, fact, value) for (tier, fact), value in found)


@dataclass(frozen=True, slots=True)
class BaselineListing:
    """A rich renderable of entries.

    Attributes:
        entries: What to list, oldest first.
        unreadable: Why entries cannot be read, by their references.
        with_facts: Whether to list device, versions and files of each.
    """

    entries: Sequence[ListedEntry]
    unreadable: dict[str, str]
    with_facts: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield a line for each entry, and the unreadable ones."""
        del console, options
        width = max((len(each.entry.reference) for each in self.entries), default=0)
        for each in self.entries:
            entry = each.entry
            revision = revision_of(each.profile)
            facts = [count_text(len(entry.files()), "run"), _when(entry), *_device(each)]
            facts += [f"revision {visible(revision[:12])}"] if revision else []
            yield Segment(entry.reference.ljust(width), HEADING)
            yield Segment(f"  {each.state.ljust(9)}  {', '.join(facts)}\n")
            if self.with_facts:
                yield from _details(each)
        if not self.entries:
            yield Segment("no baselines; `proton baseline save NAME RUN...` adds one\n", DIM)
        for id, problem in self.unreadable.items():
            yield Segment(f"UNREADABLE {visible(id)}: {visible(problem)}\n", WARNING)
        if self.unreadable:
            yield Segment("`proton baseline rm NAME@ID` removes an entry\n", DIM)


def _when(entry: Entry) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(entry.created_ns // 1_000_000_000))


def _device(listed: ListedEntry) -> list[str]:
    named = [value for _, fact, value in listed.facts if fact == "GPU name"]
    kinds = [f"{fact} {value}" for _, fact, value in listed.facts if fact.endswith(" device")]
    texts = named or kinds
    return [visible(each, 80) for each in texts[:1]]


def _details(listed: ListedEntry) -> Iterator[Segment]:
    for tier, fact, value in listed.facts:
        yield Segment(f"    {str(tier).ljust(4)}  {visible(fact)}: {visible(value)}\n", DIM)
    sizes = {file.name: file.stat().st_size for file in listed.entry.files()}
    unit = Unit.of_sizes(sizes.values())
    for name, size in sizes.items():
        yield Segment(f"    {visible(name)}  {unit.text(size)}\n", DIM)


def baselines_document(listing: BaselineListing) -> dict[str, Any]:
    """Return what ``proton baseline list --json`` and ``show --json`` print."""
    return {
        "schema": _SCHEMA,
        "version": _VERSION,
        "entries": [
            {
                "reference": each.entry.reference,
                "name": each.entry.name,
                "id": each.entry.id,
                "state": each.state,
                "created_ns": each.entry.created_ns,
                "revision": revision_of(each.profile) or None,
                "facts": [
                    {"tier": str(tier), "fact": fact, "value": value}
                    for tier, fact, value in each.facts
                ],
                "runs": [
                    {
                        "file": file.name,
                        "source": str(file),
                        "bytes": file.stat().st_size,
                    }
                    for file in each.entry.files()
                ],
            }
            for each in listing.entries
        ],
        "unreadable": dict(listing.unreadable),
    }

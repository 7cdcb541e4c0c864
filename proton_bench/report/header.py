"""The lines above a report: which profile it is, and what is missing from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from proton_bench.profile import Profile
from proton_bench.report.names import visible
from proton_bench.report.theme import DIM, HEADING, WARNING
from proton_bench.report.units import count_text

__all__ = ["HeaderReport", "losses"]


@dataclass(frozen=True, slots=True, eq=False)
class HeaderReport:
    """A rich renderable that names a profile, its devices, and records that were lost.

    Attributes:
        profile: The profile that is reported on.
        source: Name of its file.
    """

    profile: Profile
    source: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield one line of facts and one per loss."""
        del console, options
        facts = [count_text(len(self.profile), "row"), *_facts(self.profile)]
        yield Segment(visible(self.source), HEADING)
        yield Segment(f"  {', '.join(facts)}\n", DIM)
        for loss in losses(self.profile):
            yield Segment(f"{loss}\n", WARNING)
        yield Segment("\n")


def losses(profile: Profile) -> tuple[str, ...]:
    """Return a sentence about each thing that the profile should hold and does not."""
    found = []
    if profile.partial:
        found.append("PARTIAL: the run had not ended when this was written")
    for reason, count in profile.dropped.items():
        if count:
            found.append(f"DROPPED: {count_text(count, 'record')}: {visible(reason)}")
    return tuple(found)


def _facts(profile: Profile) -> Iterator[str]:
    backend = profile.provenance.get("backend")
    if isinstance(backend, str) and backend:
        yield f"backend {visible(backend)}"
    for device in profile.devices:
        arch = f" ({device.arch})" if device.arch else ""
        yield visible(f"{device.kind}:{device.index}{arch}")

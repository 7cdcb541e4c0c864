"""One timeline among several that are merged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proton_bench.errors import OutputError, UsageError
from proton_bench.model.origin import Origin

__all__ = ["TimelineInput", "copying", "merged_already"]


@dataclass(frozen=True, slots=True)
class TimelineInput:
    """A file and its facts, read before its events are copied.

    Attributes:
        file: The file.
        source: Its name, for messages.
        origin: Which process it comes from.
        facts: What it says of itself.
    """

    file: Path
    source: str
    origin: Origin
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What its tracks are called: rank, host and number of the process, as far as known."""
        origin = self.origin
        parts = [] if origin.rank is None else [f"rank {origin.rank}"]
        if origin.host:
            parts.append(f"host {origin.host}")
        if origin.process_id is not None:
            parts.append(f"process {origin.process_id}")
        if origin.is_partial:
            parts.append("partial")
        return " ".join(parts) or self.file.name


@contextmanager
def copying(found: TimelineInput) -> Iterator[None]:
    """Name the file where it cannot be read again; errors of the output pass.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read {found.source}: {reason}; name a file that exists") from None


def merged_already(source: str) -> UsageError:
    """Return the error for a file whose processes cannot be distinguished from others."""
    return UsageError(
        f"{source} is of several processes already: name the files that it was merged from"
    )

"""Shows a benchmark that got slower in its own section of pytest, without a traceback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proton_bench.support.text import visible_lines


@dataclass(frozen=True, slots=True)
class _Place:
    """The line about a failure for pytest's short summary."""

    path: str
    lineno: int
    message: str


class GateFailure:
    """The text of a failed gate, in the form in which pytest keeps tracebacks.

    Attributes:
        reprcrash: Place of the test, and one line about the failure.
    """

    def __init__(self, text: str, path: str, line: int) -> None:
        self._text = text = visible_lines(text)
        self.reprcrash = _Place(path, line, text.partition("\n")[0])

    def toterminal(self, writer: Any) -> None:
        """Write the text."""
        for line in self._text.splitlines():
            writer.line(line)

    def __str__(self) -> str:
        return self._text

"""Progress and remaining time of an experiment: a bar on a terminal, else plain lines."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from proton_bench.gate.slot import Slot, Stage
from proton_bench.support.text import visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress(Protocol):
    """Receives the progress of an experiment."""

    def expect(self, slots: int) -> None:
        """Set how many runs will follow for certain."""

    def limit(self, slots: int | None) -> None:
        """Set how many will follow at most, None if that is unknown."""

    def begin(self, slot: Slot) -> None:
        """A run begins."""

    def end(self, slot: Slot, seconds: float) -> None:
        """The run ended."""

    def say(self, text: str) -> None:
        """Show one line."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Pace:
    """Counts runs and estimates the remaining time from their durations.

    Attributes:
        done: Runs that ended.
        expected: Runs that are certain to be made, with those that ended.
        most: Runs there are at most; 0 if these are all, None if that is unknown.
    """

    def __init__(self) -> None:
        self.done = 0
        self.expected = 0
        self.most: int | None = 0
        self._seconds: list[float] = []

    def limit(self, slots: int | None) -> None:
        """Set how many runs will follow at most, None if that is unknown."""
        self.most = None if slots is None else self.done + slots

    @property
    def total(self) -> int:
        """Runs there are at most, as far as it is known."""
        return max(self.expected, self.most or 0)

    @property
    def number_text(self) -> str:
        """The number of the next run, and of how many."""
        if self.most is None:
            return str(self.done + 1)
        return f"{self.done + 1} of {self._at_most}{self.total}"

    @property
    def _at_most(self) -> str:
        return "at most " if self.total > self.expected else ""

    def note(self, seconds: float) -> None:
        """Count one run."""
        self.done += 1
        self._seconds.append(seconds)

    @property
    def left_s(self) -> float | None:
        """Seconds until the last run ends, None before the first has ended, or if unknown."""
        if not self._seconds or self.most is None:
            return None
        # The first runs compile and fill caches.
        recent = self._seconds[-8:]
        return sum(recent) / len(recent) * max(self.total - self.done, 0)

    @property
    def left_text(self) -> str:
        """The same as text, "" if unknown."""
        left = self.left_s
        if left is None:
            return ""
        minutes, seconds = divmod(round(left), 60)
        text = f"{minutes} min {seconds:02d} s left" if minutes else f"{seconds} s left"
        return f"{self._at_most}{text}"


class Lines:
    """One plain line for each run."""

    def __init__(self, stream: TextIO, doing: str) -> None:
        self._stream = stream
        self._doing = doing
        self._pace = Pace()

    def expect(self, slots: int) -> None:
        """Set how many runs will follow for certain."""
        self._pace.expected += slots

    def limit(self, slots: int | None) -> None:
        """Set how many will follow at most, None if that is unknown."""
        self._pace.limit(slots)

    def begin(self, slot: Slot) -> None:
        """Show which run begins."""
        left = self._pace.left_text
        what = "" if slot.stage is Stage.ALONE else f": {slot.text}"
        self.say(f"run {self._pace.number_text}{what}{left and f', {left}'}")

    def end(self, slot: Slot, seconds: float) -> None:
        """Count a run."""
        del slot
        self._pace.note(seconds)

    def say(self, text: str) -> None:
        """Show one line."""
        self._stream.write(f"proton {self._doing}: {visible(text)}\n")
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class TerminalBar:
    """One bar that moves."""

    def __init__(self, stream: TextIO, doing: str) -> None:
        self._pace = Pace()
        self._bar = _open_bar(stream)
        self._task = self._bar.add_task(f"proton {doing}", total=0, what="", left="")

    def expect(self, slots: int) -> None:
        """Set how many runs will follow for certain."""
        self._pace.expected += slots
        self._bar.update(self._task, total=self._pace.total)

    def limit(self, slots: int | None) -> None:
        """Set how many will follow at most, None if that is unknown."""
        self._pace.limit(slots)
        self._bar.update(self._task, total=self._pace.total)

    def begin(self, slot: Slot) -> None:
        """Show which run is on."""
        self._bar.update(self._task, what=slot.text)

    def end(self, slot: Slot, seconds: float) -> None:
        """Move on."""
        del slot
        self._pace.note(seconds)
        self._bar.update(self._task, completed=self._pace.done, left=self._pace.left_text)

    def say(self, text: str) -> None:
        """Show one line above the bar."""
        self._bar.console.print(visible(text))

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()


def open_progress(doing: str, stream: TextIO | None = None) -> Progress:
    """Return the progress display for a stream.

    Args:
        doing: Name of the command.
        stream: By default stderr, which may be None.
    """
    stream = stream or sys.stderr
    return TerminalBar(stream, doing) if stream.isatty() else Lines(stream, doing)


def _open_bar(stream: TextIO) -> Bar:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from proton_bench.support.console import open_console

    return Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[what]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        console=open_console(stream),
        transient=True,
    )

from __future__ import annotations

import io
from threading import Event

from proton_bench.cli.files import ProgressLine


class Terminal(io.StringIO):
    """A terminal that says when something was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


def test_step_of_a_slow_command_is_shown_and_removed() -> None:
    terminal = Terminal()

    with ProgressLine(terminal, patience_s=0.0) as progress:
        progress.step("reading")
        assert terminal.written.wait(60)
        progress.step("writing")

    assert terminal.getvalue().endswith("proton: writing ...\r\x1b[K")
    assert "\n" not in terminal.getvalue()


def test_quick_command_shows_nothing() -> None:
    terminal = Terminal()

    with ProgressLine(terminal, patience_s=3600.0) as progress:
        progress.step("reading")

    assert terminal.getvalue() == ""


def test_nothing_is_shown_where_no_terminal_is() -> None:
    stream = io.StringIO()

    with ProgressLine(stream, patience_s=0.0) as progress:
        progress.step("reading")

    assert stream.getvalue() == ""

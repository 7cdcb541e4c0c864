"""The console that reports are printed on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from proton_bench.support.text import SafeStream, visible_lines


class _ReportConsole(Console):
    """A console that leaves a broken pipe to the command line, which knows the exit code."""

    def on_broken_pipe(self) -> None:
        """Re-raise the error that is being handled."""
        raise BrokenPipeError

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the output; only the console makes escape sequences, names cannot."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or not text or text.isprintable():
                yield segment
            else:
                safe = visible_lines(text)
                yield segment if safe == text else Segment(safe, segment.style)


def open_console(file: TextIO | None = None) -> Console:
    """Return a console for reports that does not interpret markup, emoji or links.

    ``NO_COLOR`` turns all styles off; ``FORCE_COLOR`` turns them on in a pipe. Characters that the
    output cannot encode are escaped instead of failing.
    """
    stream = file if file is not None else sys.stdout
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return _ReportConsole(
        # None if the parent closed it: rich then drops the output.
        file=cast(TextIO, SafeStream(stream, styled=True)) if stream is not None else None,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        emoji=False,
        highlight=False,
    )

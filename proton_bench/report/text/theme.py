"""Colours of reports, and the console they are printed on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TextIO, cast

import numpy as np
import numpy.typing as npt
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style

from proton_bench.support.text import SafeStream, visible_lines

__all__ = ["BANDS", "DIM", "HEADING", "WARNING", "Band", "bands_of", "open_console"]

DIM = Style(dim=True)
HEADING = Style(bold=True)
WARNING = Style(color="yellow", bold=True)


@dataclass(frozen=True, slots=True)
class Band:
    """A range of values as shares of the largest one, and how numbers in it look.

    Attributes:
        low: Least share that belongs to the band; it ends where the band before begins.
        style: Colour of the numbers.
    """

    low: float
    style: Style


BANDS = (
    Band(0.9, Style(color="red", bold=True)),
    Band(0.7, Style(color="dark_orange")),
    Band(0.5, Style(color="yellow")),
    Band(0.3, Style(color="green")),
    Band(0.1, Style(color="cyan")),
    Band(0.0, Style(color="blue")),
)


def bands_of(values: npt.NDArray[Any], largest: float) -> list[int]:
    """Return for each value the position of its band in `BANDS`; signs are ignored."""
    if not largest > 0:
        return [len(BANDS) - 1] * len(values)
    sizes = np.abs(values.astype(np.float64))
    with np.errstate(invalid="ignore"):  # an overflow makes the largest one infinite
        shares = np.where(sizes == largest, 1.0, sizes / largest)
    lows = np.array([band.low for band in reversed(BANDS)])
    place = np.searchsorted(lows, np.nan_to_num(shares), side="right")
    found: list[int] = np.clip(len(BANDS) - place, 0, len(BANDS) - 1).tolist()
    return found


class _ReportConsole(Console):
    """A console that leaves a broken pipe to the command line, which knows the exit code."""

    def on_broken_pipe(self) -> None:
        """Pass the error on that is being handled."""
        raise BrokenPipeError

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield what is printed; only the console makes escape sequences, never a name."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or not text or text.isprintable():
                yield segment
            else:
                safe = visible_lines(text)
                yield segment if safe == text else Segment(safe, segment.style)


def open_console(file: TextIO | None = None) -> Console:
    """Return a console for reports; nothing in them is read as markup, emoji or link.

    ``NO_COLOR`` turns all styles off; ``FORCE_COLOR`` turns them on in a pipe. Characters that the
    output cannot encode are escaped instead of failing.
    """
    stream = file if file is not None else sys.stdout
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return _ReportConsole(
        # None where whoever started us closed it: rich drops what is printed then.
        file=cast(TextIO, SafeStream(stream, styled=True)) if stream is not None else None,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        emoji=False,
        highlight=False,
    )

"""``proton report``, after its options are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from proton_bench.analysis.run import Run
from proton_bench.cli.boundary import warn
from proton_bench.cli.output_file import STDOUT, print_bytes
from proton_bench.cli.work.progress_line import ProgressLine
from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import read_profile
from proton_bench.report.html.document import PageOptions, comparison_page, profile_page
from proton_bench.report.html.strip import Strip, read_strip
from proton_bench.support.files import write_file
from proton_bench.support.text import visible

__all__ = ["PageOptions", "write_page", "write_report"]


def write_report(
    files: Sequence[Path], base: Sequence[Path], options: PageOptions, target: Path
) -> None:
    """Write a page about a profile, or about its changes from base profiles.

    Raises:
        UsageError: A file cannot be read, or an option is wrong.
        ProfileFormatError: A file is corrupt.
        OutputError: The page cannot be written.
    """
    with ProgressLine() as progress:
        progress.step("reading")
        runs = _read(files)
        others = _read(base)
        strip = None if base else _strip(files[0])
        progress.step("making the page")
        if base:
            page = comparison_page(others, runs, options)
        else:
            page = profile_page(runs[0], options, strip=strip)
        content = page.encode("utf-8", "backslashreplace")
    write_page(content, target)


def _read(files: Sequence[Path]) -> list[Run]:
    return [Run(read_profile(file), str(file)) for file in files]


def _strip(file: Path) -> Strip | None:
    """Return devices over time; a timeline whose tree can be read is shown without its events."""
    try:
        return read_strip(file)
    except ProfileFormatError as error:
        warn(f"the page shows no time line: {error}")
        return None


def write_page(page: bytes, target: Path) -> None:
    """Write a page, and print its name.

    Raises:
        OutputError: It cannot be written.
    """
    if target == STDOUT:
        print_bytes(page)
        return
    write_file(target, page)
    name = str(target).encode("utf-8", "backslashreplace").decode()
    typer.echo(visible(name))

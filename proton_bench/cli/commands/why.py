"""``proton why``: what limits a run, or one row of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.inputs import check_profiles

__all__ = ["command"]


def command(
    file: Annotated[Path, typer.Argument(help="Profile of any known format.", metavar="FILE")],
    path: Annotated[
        str | None,
        typer.Argument(
            help="A part of a row's name or path, with / between names: say everything about the "
            "most expensive row that has it.",
            metavar="[PATH]",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
) -> None:
    """Say why a run is slow, with evidence and the most that can be saved."""
    check_profiles([file])
    from proton_bench.cli.work.why import answer

    answer(file, path, as_json=as_json)

"""``proton why``: what limits a run, or one row of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.files import check_profiles, print_document, print_reports

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
    from proton_bench.analysis.why.answer import why
    from proton_bench.formats.registry import read_profile
    from proton_bench.report.text.why import WhyReport, WhyRowReport, why_document
    from proton_bench.report.words.header import losses

    profile = read_profile(file)
    found, lost = why(profile, path), losses(profile)
    if as_json:
        document = why_document(found, source=os.fspath(file), losses=lost)
        print_document(document)
        return
    report = WhyReport(found, str(file), lost) if path is None else WhyRowReport(found, lost)
    print_reports(report)

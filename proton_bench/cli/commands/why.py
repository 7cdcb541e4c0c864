"""``proton why``: what limits a run, or one row of it."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from proton_bench.cli.files import check_profiles, print_bytes, print_document, print_reports
from proton_bench.cli.options import WholeOption


def command(
    file: Annotated[Path, typer.Argument(help="Profile of any known format.", metavar="FILE")],
    path: Annotated[
        str | None,
        typer.Argument(
            help="A finding's name, or a part of a row's name or path, with / between names: say "
            "everything about that finding, or the most expensive row that has it.",
            metavar="[NAME]",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            min=50,
            metavar="TOKENS",
            help="Print as much as a language model reads as so many tokens.",
        ),
    ] = None,
    whole: WholeOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
) -> None:
    """Say why a run is slow, with evidence and the most that can be saved."""
    check_profiles([file])
    from proton_bench.analysis.why.answer import why
    from proton_bench.formats.registry import read_steps
    from proton_bench.report.text.tree import print_report
    from proton_bench.report.text.why import (
        WhyFindingReport,
        WhyReport,
        WhyRowReport,
        why_document,
        within_tokens,
    )
    from proton_bench.report.words.header import losses
    from proton_bench.support.console import open_console

    profile = read_steps([file], whole=whole)[0]
    found, lost = why(profile, path), losses(profile)
    if as_json:
        document = why_document(found, source=os.fspath(file), losses=lost)
        print_document(document)
        return
    if path is None:
        report: Any = WhyReport(found, os.fspath(file), lost)
    elif not found.rows or [each.id for each in found.findings] == [path]:
        report = WhyFindingReport(found, lost)
    else:
        report = WhyRowReport(found, lost)
    if budget is None:
        print_reports(report)
    else:
        text = io.StringIO()
        print_report(open_console(text), report)
        print_bytes(within_tokens(text.getvalue(), budget).encode())

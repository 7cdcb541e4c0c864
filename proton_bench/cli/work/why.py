"""``proton why``, after its options are read."""

from __future__ import annotations

import os
from pathlib import Path

from proton_bench.analysis.why.answer import why
from proton_bench.cli.output_file import print_bytes
from proton_bench.formats.registry import read_profile
from proton_bench.report.text.why import WhyReport, WhyRowReport
from proton_bench.report.tree.tree import print_report
from proton_bench.report.words.header import losses
from proton_bench.support.console import open_console

__all__ = ["answer"]


def answer(file: Path, path: str | None, *, as_json: bool) -> None:
    """Print why a run, or one row of it, takes its time.

    Args:
        file: The profile.
        path: A part of a row's name or path; None is about the whole run.
        as_json: Print one JSON document instead of text.

    Raises:
        UsageError: The file cannot be read, or no row has that path.
        ProfileFormatError: The file is corrupt.
    """
    profile = read_profile(file)
    found, lost = why(profile, path), losses(profile)
    if as_json:
        from proton_bench.report.json.tree import encode_document
        from proton_bench.report.json.why import why_document

        document = why_document(found, source=os.fspath(file), losses=lost)
        print_bytes(encode_document(document))
        return
    report = WhyReport(found, str(file), lost) if path is None else WhyRowReport(found, lost)
    print_report(open_console(), report)

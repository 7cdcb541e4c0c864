"""``proton bisect``, after its options are read."""

from __future__ import annotations

import sys
from pathlib import Path

from proton_bench.cli.files import STDOUT, write_output
from proton_bench.cli.options import default_store
from proton_bench.errors import UsageError
from proton_bench.gate.bisect import Bisection
from proton_bench.gate.progress import open_progress
from proton_bench.gate.project import shown
from proton_bench.gate.runs import drop_unused, new_folder
from proton_bench.report.json.bisect import bisect_document
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.bisect import BisectReport
from proton_bench.report.tree.tree import print_report
from proton_bench.support.console import open_console

__all__ = ["find_revision"]


def find_revision(bisection: Bisection, *, json: Path | None) -> int:
    """Search, show the result and return the exit code.

    Args:
        bisection: The search.
        json: File for a JSON document, None for none.

    Raises:
        ProtonError: See `Bisection.run`.
    """
    bisection.ends()  # before there is a folder that an error would leave behind
    folder = new_folder("bisect", default_store())
    try:
        result = bisection.run(folder, open_progress("bisect"))
    except UsageError:
        drop_unused(folder)
        raise
    sys.stderr.write(f"proton bisect: every run is kept in {shown(folder)}\n")
    if json is not None:
        write_output(json, encode_document(bisect_document(result)))
    if json != STDOUT:
        print_report(open_console(), BisectReport(result))
    return result.exit_code

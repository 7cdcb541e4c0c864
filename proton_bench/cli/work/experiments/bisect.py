"""``proton bisect``, after its options are read."""

from __future__ import annotations

import sys
from pathlib import Path

from proton_bench.cli.output_file import STDOUT, write_output
from proton_bench.cli.project import default_store
from proton_bench.errors import InterruptedExperimentError, UsageError
from proton_bench.gate.bisect.bisect import run_bisect
from proton_bench.gate.bisect.folder import open_folder
from proton_bench.gate.bisect.request import BisectRequest
from proton_bench.gate.experiment.folders.store import drop_unused, shown
from proton_bench.gate.experiment.progress import open_progress
from proton_bench.report.json.bisect import bisect_document
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.bisect import BisectReport
from proton_bench.report.tree.tree import print_report
from proton_bench.support.console import open_console

__all__ = ["find_revision"]


def find_revision(request: BisectRequest, *, json: Path | None, restart: bool) -> int:
    """Search, show the result and return the exit code.

    Args:
        request: The search.
        json: File for a JSON document, None for none.
        restart: Whether to begin anew.

    Raises:
        ProtonError: See `run_bisect`.
    """
    revisions = request.history()  # before there is a folder that an error would leave behind
    store = default_store()
    kept = open_folder(request, store, restart=restart)
    if len(kept):
        sys.stderr.write(f"proton bisect: continuing with the runs in {shown(kept.folder)}\n")
    try:
        progress = open_progress("bisect")
        result = run_bisect(request, kept, progress, revisions=revisions)
    except UsageError:
        drop_unused(kept.folder)
        raise
    except InterruptedExperimentError as error:
        hint = f"interrupted; every run is kept in {shown(kept.folder)}, and the same command "
        raise InterruptedExperimentError(error.signal, f"{hint}continues") from None
    sys.stderr.write(f"proton bisect: every run is kept in {shown(kept.folder)}\n")
    if json is not None:
        write_output(json, encode_document(bisect_document(result)))
    if json != STDOUT:
        print_report(open_console(), BisectReport(result))
    return result.exit_code

"""The form in which errors are printed on standard error."""

from __future__ import annotations

import os
import sys

from proton_bench.errors import ProtonError
from proton_bench.support.text import visible_lines

__all__ = ["report_error"]


def report_error(error: ProtonError) -> int:
    """Print an error and return its exit code."""
    if os.environ.get("PROTON_BENCH_DEBUG") == "1":
        import traceback

        sys.stderr.write(visible_lines("".join(traceback.format_exception(error))))
    sys.stderr.write(f"proton: error: {error.report()}\n")
    return error.exit_code

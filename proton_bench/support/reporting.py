"""The form in which errors are printed on standard error."""

from __future__ import annotations

import sys

from proton_bench.errors import ProtonError


def report_error(error: ProtonError) -> int:
    """Print an error and return its exit code."""
    sys.stderr.write(f"proton: error: {error.report()}\n")
    return error.exit_code

"""The one place where errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from proton_bench.capture.runner import report_error
from proton_bench.errors import ProtonError

__all__ = ["exit_code"]

_EXIT_INTERNAL = 70
_EXIT_INTERRUPTED = 130
_EXIT_BROKEN_PIPE = 141


def exit_code(command: Callable[[], int]) -> int:
    """Run a command to its exit code, whatever it raises but ``SystemExit``."""
    try:
        code = command()
        # Here, where a reader that went away still can be told from a bug.
        sys.stdout.flush()
    except ProtonError as error:
        return report_error(error)
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        # The interpreter must not fail again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_BROKEN_PIPE
    except Exception:  # noqa: BLE001 - a bug of ours; 1 would read as a regression in a gate
        traceback.print_exc()
        sys.stderr.write("proton: internal error; please report the lines above\n")
        return _EXIT_INTERNAL
    return code

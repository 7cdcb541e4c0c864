"""The one place where errors become messages and exit codes."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn, TextIO, cast

from proton_bench.errors import MissingExtraError, OutputError, ProtonError, UsageError
from proton_bench.support.reporting import report_error
from proton_bench.support.text import SafeStream, visible

_EXIT_INTERNAL = 70
_EXIT_INTERRUPTED = 130
_EXIT_BROKEN_PIPE = 141
_YOUNG_OBJECTS = 100_000


def collect_rarely() -> None:
    """Make the garbage collector of this short-lived process run rarely.

    Imports make a hundred thousand objects and no garbage; collecting them repeatedly takes a fifth
    of the time of a short command.
    """
    gc.set_threshold(_YOUNG_OBJECTS)
    atexit.register(_keep_objects)


def _keep_objects() -> None:
    """Skip the last collection; but DuckDB prints all of its objects that are left by then."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def end_interrupted() -> NoReturn:
    """End this process after Ctrl-C, without what libraries print at a usual end.

    DuckDB prints its objects that an interrupted import or statement left.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or None
            stream.flush()
    os._exit(_EXIT_INTERRUPTED)


def exit_code(command: Callable[[], int]) -> int:
    """Run a command to its exit code, whatever it raises but ``SystemExit``."""
    if sys.stderr is None:  # closed as by `2>&-`: messages have nowhere to go
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    streams = sys.stdout, sys.stderr
    # All output of commands, plugins and libraries passes through the escaping stream.
    sys.stderr = cast(TextIO, SafeStream(sys.stderr))
    if sys.stdout is not None:
        sys.stdout = cast(TextIO, SafeStream(sys.stdout))
    try:
        return _exit_code(command)
    finally:
        sys.stdout, sys.stderr = streams


def warn(message: str) -> None:
    """Print one line of warning on stderr."""
    sys.stderr.write(f"proton: warning: {visible(message)}\n")


def _exit_code(command: Callable[[], int]) -> int:
    try:
        with _ended_by_ctrl_c(), warnings.catch_warnings():
            # Sums beyond all floats are infinite, and shown as that.
            warnings.filterwarnings("ignore", "(overflow|invalid value) encountered")
            code = command()
        # Here a reader that went away can still be distinguished from a bug.
        if sys.stdout is not None:  # closed by the parent, as with `>&-`
            sys.stdout.flush()
    except ProtonError as error:
        return report_error(error)
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()
        return _EXIT_BROKEN_PIPE
    except MemoryError:
        return report_error(UsageError("there is not enough memory for this: use a smaller file"))
    except SystemExit as end:
        # Typer would exit with 1, which means a regression.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _drop_stdout()
        return _EXIT_BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - a bug of ours; 1 would read as a gate's regression
        if _is_full(error):
            _drop_stdout()
            return report_error(OutputError(_full_message(error)))
        import traceback

        traceback.print_exc()
        sys.stderr.write("proton: internal error; please report the lines above\n")
        return _EXIT_INTERNAL
    return code


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """Take what is raised after Ctrl-C for KeyboardInterrupt.

    Libraries that are imported at that moment raise other exceptions.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    is_interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        is_message = isinstance(error, ProtonError) and not isinstance(error, MissingExtraError)
        if is_interrupted and not is_message:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_full(error: Exception) -> bool:
    # Errors of files are ours by now; one without a file name comes from a standard stream.
    return (
        isinstance(error, OSError)
        and error.filename is None
        and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
    )


def _full_message(error: Exception) -> str:
    reason = getattr(error, "strerror", None)
    return f"cannot write to standard output: {reason}; free space there or write to another file"


def _drop_stdout() -> None:
    """Keep the interpreter from failing again when it flushes at its end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

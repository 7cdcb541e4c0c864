"""The bare runner: runs the target in this process under a session.

It opens a session, runs the target, finalizes, and exits with the target's code.
The command line parses with heavy libraries and then replaces its process by this module::

    python bootstrap.py '<run options as JSON>' [target's arguments...]

so that the target's process has nothing of ours but the collector.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from proton_bench.errors import EmptyProfileError, OutputError, ProtonError, UsageError
from proton_bench.recording.children.children import (
    ChildOptions,
    files_of_children,
    follow_children,
    forget_children,
)
from proton_bench.recording.launcher.module_folders import put_first
from proton_bench.recording.launcher.run_options import (
    RunOptions,
    session_options,
    with_passes,
)
from proton_bench.recording.launcher.target import Target, TargetKind, load_target, own_traceback
from proton_bench.recording.session.interrupts import uninterrupted
from proton_bench.recording.stderr import QUIET, is_quiet, say, shown_path, warn
from proton_bench.recording.summary import MOST_LINES, summarize_file
from proton_bench.support.reporting import report_error

if TYPE_CHECKING:
    from pathlib import Path

    from proton_bench.recording.session.canary import SessionCanary
    from proton_bench.recording.session.session import Session
    from proton_bench.recording.session.windows import PlannedWindows


_NO_CHILD = (
    "no profile was written: no Python process of the program recorded anything, or they ran "
    "with -I, -E or -S, or without proton_bench"
)
_MAX_SHOWN = 4  # files that are named


def _names(paths: Sequence[str | Path], folder: str) -> str:
    shown = ", ".join(shown_path(str(path), folder) for path in paths[:_MAX_SHOWN])
    rest = len(paths) - _MAX_SHOWN
    return shown + (f" and {rest} more" if rest > 0 else "")


class FollowedChildren:
    """The Python processes that the target starts.

    Args:
        options: Of the run; the environment of this process follows from them.
    """

    def __init__(self, options: RunOptions) -> None:
        from proton_bench.recording.session.session import is_disabled

        self._options = options
        self._started_ns = time.time_ns()
        self._are_followed = options.children and not is_disabled() and not self._on_stdout
        if self._are_followed:
            follow_children(self._child_options(), os.environ)
        else:
            forget_children(os.environ)

    @property
    def _on_stdout(self) -> bool:
        return self._options.name in ("", "-")

    def check(self) -> None:
        """Check before the start that children can be recorded.

        Raises:
            ProtonError: An option is wrong, or the output cannot be written.
        """
        from proton_bench.recording.session.options import plan_capture
        from proton_bench.recording.session.output import check_writable
        from proton_bench.recording.session.output_format import check_formats

        if self._on_stdout:
            raise UsageError(
                "the processes of a program cannot share stdout for their profiles: "
                "name a file with -n or -o"
            )
        if not self._options.children:
            raise UsageError(
                "a program is recorded through its Python children: leave --no-children out"
            )
        if self._are_followed:
            plan = plan_capture(session_options(self._options))
            check_formats(self._options.formats, plan.data, plan.writable_timelines)
            check_writable(self._options.name)

    def report(self, *, warns: bool = False) -> bool:
        """Print the files of children; with ``warns`` also if there are none.

        Returns:
            Whether there are any.
        """
        if not self._are_followed:
            return False
        options = self._options
        paths = files_of_children(
            options.name, options.formats, self._started_ns, has_own=not warns
        )
        if paths:
            say(f"children wrote {_names(paths, options.folder)}")
        killed = files_of_children(options.name, (), self._started_ns, killed=True)
        if killed:
            say(f"children that did not end by themselves left {_names(killed, options.folder)}")
            paths += killed
        if paths:
            return True
        if warns and "{" not in options.template:
            warn(_NO_CHILD + (", or no window began in one" if options.windows else ""))
        return False

    def _child_options(self) -> ChildOptions:
        options = self._options
        return ChildOptions(
            name=options.template or options.name,
            folder=options.folder,
            formats=options.formats,
            started_ns=self._started_ns,
            context=options.context,
            data=options.data,
            backend=options.backend,
            mode=options.mode,
            hook=options.hook,
            revision=options.revision,
            compat=options.compat,
            windows=options.windows,
        )


def _write_line(line: str) -> None:
    # The process' own stream: the target may have replaced or closed sys.stderr.
    if sys.__stderr__ is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.__stderr__.write(line)
            sys.__stderr__.flush()


class Progress:
    """Context manager that prints a line every few seconds while its block runs.

    Args:
        doing: What takes its time, e.g. ``writing x``.
        interval_s: Seconds before the first line and between two lines.
        write: Takes each line; stderr by default.
    """

    def __init__(
        self,
        doing: str,
        *,
        interval_s: float = 2.0,
        write: Callable[[str], None] = _write_line,
    ) -> None:
        self._doing = doing
        self._interval_s = interval_s
        self._write = write
        self._begun = threading.Event()
        self._done = threading.Event()
        self._watcher: threading.Thread | None = None

    def arm(self) -> None:
        """Start the watching thread early; from Python 3.12 on none starts during shutdown.

        Where no thread can be started, the work goes on without notices.
        """
        if self._watcher is not None:
            return
        # AttributeError: the target deleted sys.excepthook.
        with contextlib.suppress(RuntimeError, AttributeError):
            watcher = threading.Thread(target=self._watch, name="proton-progress", daemon=True)
            watcher.start()
            self._watcher = watcher

    def __enter__(self) -> Progress:
        """Begin the work."""
        self.arm()
        self._begun.set()
        return self

    def __exit__(self, *exc_details: object) -> None:
        """End the work; no line comes after this."""
        self._done.set()
        if self._watcher is not None and self._watcher.is_alive():
            self._watcher.join()

    def _watch(self) -> None:
        self._begun.wait()
        seconds = 0.0
        while not self._done.wait(self._interval_s):
            seconds += self._interval_s
            self._write(f"proton: {self._doing}... {seconds:.0f} s\n")


_EMPTY = (
    "the profile is empty: the target ran nothing that the backend records (see `proton "
    "doctor`, and -b for another backend)"
)
_EXIT_INTERRUPTED = 128 + signal.SIGINT
_NO_TESTS_RAN = (4, 5)  # pytest's codes for wrong usage, and for no tests
_NO_TESTS = "no tests ran, so no profile was written"


def main(argv: list[str] | None = None) -> None:
    """Run a target in the process of the command line; ends with ``SystemExit``."""
    arguments = sys.argv[1:] if argv is None else argv
    options = RunOptions.from_json(arguments[0])
    if options.quiet:
        os.environ[QUIET] = "1"  # children of the target are as quiet
    target = Target(options.kind, options.target, tuple(arguments[1:]))
    try:
        options = options if _is_disabled() else with_passes(options)
        notices = _prepare(options)
        children = FollowedChildren(options)
        if target.kind is TargetKind.PROGRAM:
            put_first(options.first_folders)
            _run_program(target, children, notices)
        recording = _Recording(options, children)
    except ProtonError as error:
        raise SystemExit(report_error(error)) from None
    for notice in notices:
        say(notice)
    recording.finish_at_exit()
    put_first(options.first_folders)
    try:
        try:
            _run(target, recording)
        except BaseException as error:
            recording.target_ended(well=isinstance(error, SystemExit) and not error.code)
            raise
        recording.target_ended(well=True)
    except KeyboardInterrupt:  # after the target's last line
        raise SystemExit(_EXIT_INTERRUPTED) from None


def _prepare(options: RunOptions) -> list[str]:
    """Do everything that must happen before the target imports its libraries; return notices."""
    if options.compat:
        from proton_bench.recording import compat

        compat.install()
    elif os.environ.pop("PROTON_BENCH_COMPAT", ""):  # the option wins
        from proton_bench.recording import compat

        compat.uninstall()
    if not options.interpret or _is_disabled():
        return []
    from proton_bench.plugin.manager import resolve_backend

    backends = resolve_backend(options.backend)
    notices = [backend.prepare() for backend in backends if backend.prepare is not None]
    return [notice for notice in notices if notice]


def _run(target: Target, recording: _Recording) -> None:
    error = _uncaught(target, recording)
    if error is not None:  # shown here, outside error handling
        _show_traceback(error)
        raise SystemExit(_EXIT_INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1)


def _uncaught(target: Target, recording: _Recording) -> BaseException | None:
    """Run the target and return the error that ended it."""
    try:
        _load(target, recording)()
    except SystemExit as end:
        if target.kind is TargetKind.PYTEST and end.code in _NO_TESTS_RAN:
            recording.discard(_NO_TESTS)
        # The interpreter turns it into the exit code, and prints it if it is a text.
        raise
    except BaseException as error:  # noqa: BLE001 - as at the end of any Python program
        return error
    return None


def _load(target: Target, recording: _Recording) -> Callable[[], None]:
    try:
        return load_target(target)
    except ProtonError as error:
        recording.discard()
        raise SystemExit(report_error(error)) from None


def _show_traceback(error: BaseException) -> None:
    """Print an uncaught error as the interpreter would, without our frames."""
    from proton_bench.recording.native import native

    error.__traceback__ = own_traceback(error)
    native.print_uncaught(error)


def _is_disabled() -> bool:
    from proton_bench.recording.session.session import is_disabled

    return is_disabled()


def _open_session(options: RunOptions) -> Session:
    from proton_bench.recording.session.partials import write_partials
    from proton_bench.recording.session.session import open_session

    session = open_session(session_options(options))
    write_partials(session, options.formats)
    return session


def _open_windows(options: RunOptions) -> PlannedWindows | None:
    """Return what opens and closes the windows of a run, None where all of it is recorded."""
    if not options.windows or _is_disabled():
        return None
    from proton_bench.recording.session.windows import PlannedWindows, WindowPlan

    plan = WindowPlan.read(options.windows)
    return PlannedWindows(plan, session_options(options), options.formats)


def _begin_canary(session: Session) -> SessionCanary:
    from proton_bench.recording.session.canary import SessionCanary

    canary = SessionCanary(session)
    canary.begin()
    return canary


def _run_program(target: Target, children: FollowedChildren, notices: list[str]) -> NoReturn:
    """Run a program that is not Python; the Python processes in it record themselves."""
    from proton_bench.recording.launcher.program import run_program

    children.check()
    for notice in notices:
        say(notice)
    code = run_program(target.value, target.arguments)
    children.report(warns=True)
    raise SystemExit(code)


class _Recording:
    """The session of the command line, from before the target until after its exit handlers."""

    def __init__(self, options: RunOptions, children: FollowedChildren) -> None:
        from proton_bench.flags import flags

        self._options = options
        self._needs_records = False
        self._children = children
        self._progress = Progress(f"writing {os.path.basename(options.name) or 'the profile'}")
        self._process_id = os.getpid()
        # None if profiling is disabled: the target then runs as without us.
        self._session: Session | None = None
        self._windows = _open_windows(options)
        if self._windows is None and not _is_disabled():
            self._session = _open_session(options)
        self._canary: SessionCanary | None = None
        if self._session is not None and options.canary:
            self._canary = _begin_canary(self._session)
        flags.command_line = True

    def discard(self, remark: str = "") -> None:
        """Close the session without writing a file, and say why."""
        session = self._take_session()
        if session is not None:
            session.finalize(formats=())
            if remark:
                warn(remark)

    def _take_session(self) -> Session | None:
        """Return the session that is left at the end, the first time."""
        session, self._session = self._session, None
        if self._windows is not None:
            self._windows.end()
            session = self._windows.session
        return session if session is not None and session.is_live else None

    def finish_at_exit(self) -> None:
        """Finalize when the target ends, in any way.

        Exit handlers run last in, first out, and after the threads of the target were joined; so
        this one, registered before the target starts, sees all of the target's work.
        """
        if self._session is not None or self._windows is not None:
            from proton_bench.recording.native import native

            self._exit_with = native.exit_with
            atexit.register(self._finish)

    def target_ended(self, *, well: bool) -> None:
        """Do the last steps of the run that need threads, which exit handlers cannot start."""
        self._needs_records = well and self._options.needs_records
        if self._canary is not None and self._session is not None:
            self._canary.end()
        self._progress.arm()

    def _finish(self) -> None:
        if os.getpid() != self._process_id:
            return
        with uninterrupted() as interrupts:
            self._write()
        if interrupts:
            say("interrupted at the end; the recording is written")
            self._exit_with(_EXIT_INTERRUPTED)

    def _write(self) -> None:
        session, windows = self._take_session(), self._windows
        earlier = [] if windows is None else windows.paths
        if session is None:
            self._end_failed(earlier)
            return
        formats = self._options.formats
        if windows is not None and windows.is_apart and not session.has_window:
            formats = ()
        try:
            with self._progress:
                session.settle()
                counts = session.counts()
                has_records = session.has_records or bool(earlier)
                paths = [*earlier, *session.finalize(formats=formats)]
        except Exception as error:  # noqa: BLE001 - the program may have left anything behind
            what = "" if isinstance(error, ProtonError) else f"{type(error).__name__}: "
            say(f"error: {what}{error}", is_error=True)
            warn("the profile was not written, or not in every format; see --strict")
            if self._options.strict:
                known = error if isinstance(error, ProtonError) else OutputError
                self._exit_with(known.exit_code)
            return
        try:
            self._tell(session, paths, counts, has_records=has_records)
        except Exception as error:  # noqa: BLE001 - as above
            warn(f"the rest of the summary is left out: {type(error).__name__}: {error}")

    def _end_failed(self, paths: Sequence[Path]) -> None:
        """Name the files of windows before one that could not be written."""
        if paths:
            say(f"wrote {_names(paths, self._options.folder)}")
        if self._windows is not None and self._windows.has_failed and self._options.strict:
            self._exit_with(OutputError.exit_code)

    def _tell(
        self,
        session: Session,
        paths: Sequence[Path],
        counts: Mapping[str, int],
        *,
        has_records: bool,
    ) -> None:
        """Say what was written, and what of it is worth a line."""
        self._write_modules()
        is_empty = not has_records and not counts["samples"]
        missed = self._windows.missed() if self._windows is not None else ""
        remarks = session.remarks if session.has_window else []  # else of windows that are over
        for remark in remarks or ([_EMPTY] if is_empty and not missed else []):
            warn(remark)
        if paths:
            say(f"wrote {_names(paths, self._options.folder)}")
        if counts["dropped"]:
            warn(f"{counts['dropped']} records were lost; the profile says why")
        has_children = self._children.report()
        if missed and not has_children:
            warn(missed)
        if self._needs_records and not has_records and not has_children:
            self._exit_with(EmptyProfileError.exit_code)
        if not is_empty and not is_quiet():
            most = MOST_LINES - has_children
            summarize_file([str(path) for path in paths], self._options.folder, most)

    def _write_modules(self) -> None:
        if not self._options.modules_file:
            return
        from proton_bench.recording.launcher.loaded_modules import write_loaded_modules

        try:
            write_loaded_modules(self._options.modules_file)
        except OSError as error:
            warn(f"the list of loaded modules was not written: {error.strerror or error}")

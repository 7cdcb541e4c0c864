"""The bare runner: opens a session, runs the target in this process, finalizes, keeps its code.

The command line parses with heavy libraries and then replaces its process by this module::

    python bootstrap.py '<run options as JSON>' [target's arguments...]

so that the target finds nothing of ours in its process but the collector.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from proton_bench.capture.progress import Progress
from proton_bench.capture.target import Target, TargetKind, load_target, own_traceback
from proton_bench.errors import ProtonError

if TYPE_CHECKING:
    from proton_bench.capture.session import Session

__all__ = ["RunOptions", "main", "report_error", "runner_command"]

_BOOTSTRAP = os.path.join(os.path.dirname(__file__), "bootstrap.py")
_EXIT_STRICT = 70
# Counts of a session that stand for something in its profile.
_FACTS = ("ranges", "records", "metrics")
_EMPTY = (
    "the profile is empty: the target ran nothing that the backend records "
    "(see `proton plugins`, and -b for another backend)"
)
_SIGNAL_BASE = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Everything that ``proton run`` decided, as it crosses the exec.

    Attributes:
        kind: What ``target`` is.
        target: Path, module name or source text.
        name: Output name without a suffix, absolute; "" and "-" mean stdout.
        formats: Suffixes, without the dot, of the files to write.
        context: Where call paths come from, ``shadow`` or ``python``.
        data: Kind of data, ``tree``.
        backend: Names joined by ``+``; None asks the plugins.
        mode: Mode text for the backend that declares it.
        hook: Name of a launch hook, or None.
        compat: ``triton.profiler`` resolves to this package.
        interpret: Backends may prepare the process, e.g. switch Triton to its interpreter.
        strict: A profile that cannot be written changes the exit code.
        command: Command line for the provenance.
    """

    kind: TargetKind
    target: str
    name: str
    formats: tuple[str, ...]
    context: str = "shadow"
    data: str = "tree"
    backend: str | None = None
    mode: str | None = None
    hook: str | None = None
    compat: bool = True
    interpret: bool = True
    strict: bool = False
    command: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Encode as one ASCII line; undecodable bytes of file names survive."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RunOptions:
        """Decode what ``to_json`` wrote."""
        fields = json.loads(text)
        fields["kind"] = TargetKind(fields["kind"])
        fields["formats"] = tuple(fields["formats"])
        fields["command"] = tuple(fields["command"])
        return cls(**fields)


def runner_command(
    options: RunOptions, arguments: Sequence[str], flags: Sequence[str] = ()
) -> list[str]:
    """Return the command that runs a target, for ``os.execv``.

    Args:
        options: What to run and how to record it.
        arguments: The target's own arguments; kept apart, since one argument may have 128 KiB.
        flags: Options for the interpreter.
    """
    return [sys.executable, *flags, _BOOTSTRAP, options.to_json(), *arguments]


def report_error(error: ProtonError) -> int:
    """Print an error the way every command does and return its exit code."""
    if os.environ.get("PROTON_BENCH_DEBUG") == "1":
        traceback.print_exception(error)
    sys.stderr.write(f"proton: error: {error}\n")
    return error.exit_code


def main(argv: list[str] | None = None) -> None:
    """Run a target as the process that the command line has become; ends by ``SystemExit``."""
    arguments = sys.argv[1:] if argv is None else argv
    options = RunOptions.from_json(arguments[0])
    target = Target(options.kind, options.target, tuple(arguments[1:]))
    try:
        notices = _prepare(options)
        recording = _Recording(options)
    except ProtonError as error:
        raise SystemExit(report_error(error)) from None
    for notice in notices:
        _say(notice)
    recording.finish_at_exit()
    try:
        _run(target, recording)
    finally:
        recording.target_ended()


def _prepare(options: RunOptions) -> list[str]:
    """Do what has no effect once the target has imported its libraries; return notices on it."""
    if options.compat:
        from proton_bench.capture import compat

        compat.install()
    if not options.interpret or _is_disabled():
        return []
    from proton_bench.plugin.manager import resolve_backend

    backends = resolve_backend(options.backend)
    notices = [backend.prepare() for backend in backends if backend.prepare is not None]
    return [notice for notice in notices if notice]


def _run(target: Target, recording: _Recording) -> None:
    try:
        _load(target, recording)()
    except SystemExit:
        # The interpreter turns it into the exit code, and prints it where it is a text.
        raise
    except KeyboardInterrupt as error:
        _show_traceback(error)
        raise SystemExit(_SIGNAL_BASE + signal.SIGINT) from None
    except BaseException as error:  # noqa: BLE001 - as at the end of any Python program
        raise SystemExit(_show_traceback(error)) from None


def _load(target: Target, recording: _Recording) -> Callable[[], None]:
    try:
        return load_target(target)
    except ProtonError as error:
        recording.discard()
        raise SystemExit(report_error(error)) from None


def _show_traceback(error: BaseException) -> int:
    """Print an uncaught error as the interpreter would, without our frames."""
    error.__traceback__ = own_traceback(error)
    sys.excepthook(type(error), error, error.__traceback__)
    return 1


def _is_disabled() -> bool:
    from proton_bench.capture.session import is_disabled

    return is_disabled()


def _open_session(options: RunOptions) -> Session:
    from proton_bench.capture.session import SessionOptions, open_session

    return open_session(
        SessionOptions(
            name=options.name,
            context=options.context,
            data=options.data,
            backend=options.backend,
            mode=options.mode,
            hook=options.hook,
            command=options.command,
        )
    )


class _Recording:
    """The session of the command line, from before the target until after its exit handlers."""

    def __init__(self, options: RunOptions) -> None:
        from proton_bench.flags import flags

        self._options = options
        self._progress = Progress(f"writing {os.path.basename(options.name) or 'the profile'}")
        self._process_id = os.getpid()
        self._folder = _current_folder()
        # None where profiling is disabled: the target then runs as if it were alone.
        self._session: Session | None = None if _is_disabled() else _open_session(options)
        flags.command_line = True

    def discard(self) -> None:
        """Close the session without writing a file."""
        if self._session is not None:
            self._session.finalize(formats=())
            self._session = None

    def finish_at_exit(self) -> None:
        """Finalize when the target is over, however it ends.

        Exit handlers run last in, first out, and after the threads of the target were joined; so
        this one, registered before the target starts, sees everything that the target does.
        """
        atexit.register(self._finish)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._die)

    def target_ended(self) -> None:
        """Get ready for finalizing while threads can still be started."""
        self._progress.arm()

    def _die(self, number: int, frame: types.FrameType | None) -> None:
        del frame
        if os.getpid() != self._process_id:
            # A forked child inherits the handler; there the signal keeps its usual meaning.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self._finish()
        _leave(_SIGNAL_BASE + number)

    def _finish(self) -> None:
        session, self._session = self._session, None
        if session is None or os.getpid() != self._process_id:
            return
        try:
            with self._progress:
                session.deactivate(flushing=True)
                counts = session.counts()
                paths = session.finalize(formats=self._options.formats)
        except ProtonError as error:
            _say(f"error: {error}")
            _say("warning: the profile was not written, or not in every format")
            if self._options.strict:
                _leave(_EXIT_STRICT)
            return
        if not any(counts[kind] for kind in _FACTS):
            _say(f"warning: {_EMPTY}")
        if paths:
            names = ", ".join(_seen_from(self._folder, str(path)) for path in paths)
            _say(f"wrote {names}")
        if counts["dropped"]:
            _say(f"warning: {counts['dropped']} records were lost; the profile says why")


def _say(text: str) -> None:
    """Write to the process' own stderr, also where the target replaced or closed ``sys.stderr``."""
    stream = sys.__stderr__
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            stream.write(f"proton: {text}\n")
            stream.flush()


def _seen_from(folder: str, path: str) -> str:
    """Shorten a path for someone in the folder where the command was given."""
    return min(os.path.relpath(path, folder), path, key=len) if folder else path


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def _leave(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)

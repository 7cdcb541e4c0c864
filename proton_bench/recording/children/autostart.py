"""Opens and closes the session of a child of a recorded process."""

from __future__ import annotations

import atexit
import os
import signal
import sys

from proton_bench.errors import ProtonError
from proton_bench.flags import flags
from proton_bench.recording.children.children import AUTOSTART, ChildOptions, child_name
from proton_bench.recording.native import native
from proton_bench.recording.session.interrupts import uninterrupted
from proton_bench.recording.session.output_format import trace_formats_of
from proton_bench.recording.session.partials import write_partials
from proton_bench.recording.session.recording import Session, open_session
from proton_bench.recording.session.session import SessionOptions, is_disabled
from proton_bench.recording.session.windows import PlannedWindows, WindowPlan


def start_child(*, is_rank: bool) -> None:
    """Open the session that the environment asks for; an error is one line on stderr.

    It is written when this process ends, but only if something was recorded.

    Args:
        is_rank: This process is the first of its rank, so its files may bear the rank's name.
    """
    if is_disabled():
        return
    try:
        options = ChildOptions.from_json(os.environ[AUTOSTART])
        if options.compat:
            from proton_bench.recording import compat

            compat.install()
        name = child_name(options, is_rank=is_rank)
        recorded: Session | PlannedWindows
        if options.windows:
            plan = WindowPlan.read(options.windows)
            recorded = PlannedWindows(plan, _session_options(options, name), options.formats)
        else:
            recorded = open_session(_session_options(options, name))
            write_partials(recorded, options.formats)
            native.write_when_terminated()  # as pools end their workers
    except (ProtonError, ValueError) as error:
        _warn(f"is not recorded: {error}")
        return
    flags.command_line = True
    _finish_at_exit(recorded, options.formats)


def _session_options(options: ChildOptions, name: str) -> SessionOptions:
    return SessionOptions(
        name=name,
        context=options.context,
        data=options.data,
        backend=options.backend,
        mode=options.mode,
        hook=options.hook,
        revision=options.revision,
        trace_formats=trace_formats_of(options.formats, options.data),
        samples_host=True,
    )


def _finish_at_exit(recorded: Session | PlannedWindows, formats: tuple[str, ...]) -> None:
    process_id = os.getpid()

    def finish() -> None:
        if os.getpid() != process_id:
            return
        with uninterrupted() as interrupts:
            _finish(recorded, formats)
        if interrupts:  # its parent sees the signal, as without the profiler
            native.exit_with(-signal.SIGINT)

    atexit.register(finish)
    util = sys.modules.get("multiprocessing.util")
    if util is None:
        return

    def finish_worker(_recorded: object) -> None:
        # Workers that are forked from a server leave without running exit handlers.
        if os.getpid() == process_id:
            util.Finalize(None, finish, exitpriority=-100)

    finish_worker(recorded)
    # A new worker drops registered handlers and calls this one.
    util.register_after_fork(recorded, finish_worker)


def _finish(recorded: Session | PlannedWindows, formats: tuple[str, ...]) -> None:
    if isinstance(recorded, Session):
        session = recorded
    else:
        recorded.end()
        session = recorded.session
        if recorded.is_apart and not session.has_window:
            formats = ()
    if not session.is_live:
        return
    try:
        session.settle()
        session.finalize(formats=formats if session.has_records else ())
    except ProtonError as error:
        _warn(f"did not write its profile: {error}")


def _warn(text: str) -> None:
    stream = sys.__stderr__
    if stream is not None:
        stream.write(f"proton: warning: process {os.getpid()} {text}\n")
        stream.flush()

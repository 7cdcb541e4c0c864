"""A recorded block, and the profile that was recorded last."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from proton_bench.errors import SessionError
from proton_bench.recording.context.sources import AUTO
from proton_bench.recording.session.host_samples import without_host_samples
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.output_format import trace_formats_of
from proton_bench.recording.session.output_name import read_name
from proton_bench.recording.session.recording import Session, last_files, open_session
from proton_bench.recording.session.session import is_disabled
from proton_bench.recording.session.windows import ScheduledWindows
from proton_bench.recording.stderr import is_quiet
from proton_bench.recording.summary import best_file, print_summary

if TYPE_CHECKING:
    from proton_bench.model.profile import Profile
    from proton_bench.recording.session.windows import Schedule


_numbers = itertools.count()
_last_block: tuple[int, Profile] | None = None


class profiled:  # noqa: N801 - used like a function
    """Record a block of code and print a summary of it.

    ::

        with proton_bench.profiled() as p:
            train()
        p.profile.to_pandas()

    Args:
        name: Output as ``proton run -n`` takes it; None writes no file.
        shows: Print the summary, on stderr.
        schedule: As of `start`; with a name, each window has a file of its own.
        **options: Options of `start`, such as ``backend``; ``context`` is ``auto`` by default.

    Attributes:
        profile: What was recorded, once the block has ended; None where profiling is disabled.
    """

    def __init__(
        self,
        name: str | os.PathLike[str] | None = None,
        *,
        shows: bool = True,
        schedule: Schedule | None = None,
        **options: Any,
    ) -> None:
        self.profile: Profile | None = None
        self._name = None if name is None else os.fspath(name)
        self._options = {"context": AUTO, "samples_host": True, **options}
        self._shows = shows
        self._formats: tuple[str, ...] = ()
        self._schedule = schedule
        self._session: Session | None = None
        self._windows: ScheduledWindows | None = None

    def __enter__(self) -> profiled:
        """Begin to record.

        Raises:
            UsageError: An option is unknown or does not fit.
            BackendUnavailableError: A backend cannot run here.
            OutputError: The output cannot be written.
            SessionError: The block is being recorded already.
        """
        if is_disabled():
            return self
        if self._session is not None and self._session.is_live:
            raise SessionError("this block is being recorded already: make another profiled()")
        if self._name is None:
            place = f"proton-{os.getpid()}-{next(_numbers)}"
            path = os.path.join(tempfile.gettempdir(), place)  # a name only: no file is written
        else:
            data = self._options.get("data", "tree")
            output = read_name(self._name, data=data, mode=self._options.get("mode"))
            path, self._formats = output.name, output.formats
            self._options["trace_formats"] = trace_formats_of(output.formats, data)
        options = SessionOptions(name=path, **self._options)
        if self._schedule is None:
            self._session = open_session(options)
        else:
            is_apart = bool(self._formats)
            self._windows = ScheduledWindows(
                self._schedule, options, self._formats, is_apart=is_apart
            )
            self._session = self._windows.session
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the recording, write what was asked for, and print the summary."""
        global _last_block
        session, self._session = self._session, None
        earlier: list[Path] = []
        if self._windows is not None:
            self._windows.end()
            session, earlier = self._windows.session, self._windows.paths
        if session is None or not session.is_live:
            return
        session.settle()
        with without_host_samples():  # of other sessions: a report is not work of the program
            profile = session.profile()
            files = earlier
            if earlier and not session.has_window:
                session.finalize(formats=())
                profile = _read(earlier) or profile
            else:
                files = session.finalize(formats=self._formats)
            self.profile = profile
            _last_block = (last_files()[0], profile)
            if self._shows and not is_quiet():
                print_summary(lambda: profile, best_file([str(file) for file in files]) or "")


def last() -> Profile:
    """Return the profile of the session that ended last in this process.

    Raises:
        SessionError: No session has ended yet, or none of its files can be read.
        ProfileFormatError: Its file was overwritten by something else.
    """
    number, files = last_files()
    if _last_block is not None and _last_block[0] == number:
        return _last_block[1]
    profile = _read(files)
    if profile is None:
        raise SessionError("no session has ended yet whose profile could be read")
    return profile


def _read(files: Sequence[Path]) -> Profile | None:
    """Return the newest profile of these files, None if none can be read."""
    path = best_file([str(file) for file in reversed(files)])
    if path is None:
        return None
    from proton_bench.formats.registry import read_profile

    return read_profile(path)

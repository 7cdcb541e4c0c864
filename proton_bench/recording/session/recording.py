"""Sessions: what is recorded, by which collectors, and where it is written in the end."""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proton_bench.errors import SessionError, UsageError
from proton_bench.flags import flags
from proton_bench.recording.children.child_profiles import (
    AddedProfile,
    add_counts,
    merge_added,
)
from proton_bench.recording.context.tasks import follow_tasks, leave_tasks
from proton_bench.recording.counters.ceilings import ceiling_facts
from proton_bench.recording.counters.gpm import wants_bursts, wants_gpm
from proton_bench.recording.counters.store import PhaseJoiner, store_counters
from proton_bench.recording.gpu.counters import start_counters, stop_counters, take_gpm_facts
from proton_bench.recording.job_ranks import rank_facts
from proton_bench.recording.kernels import hooks as launch_hooks
from proton_bench.recording.kernels.hooks import HookManager
from proton_bench.recording.models.collectives import collective_facts, groups
from proton_bench.recording.models.data_loaders import forget_loaders, loader_facts
from proton_bench.recording.models.torch_context import torch_context
from proton_bench.recording.models.torch_work import value_works
from proton_bench.recording.native import native
from proton_bench.recording.session.collectors import (
    CollectorLease,
    forget_after_fork,
    lease_collectors,
    stop_unused,
)
from proton_bench.recording.session.conversion import (
    PhaseConverter,
    convert_file,
    prepare,
)
from proton_bench.recording.session.host_samples import (
    flush_host_samples,
    prepare_host_samples,
    start_host_samples,
    stop_host_samples,
)
from proton_bench.recording.session.host_samples import forget_after_fork as forget_samples
from proton_bench.recording.session.interrupts import uninterrupted
from proton_bench.recording.session.options import (
    CapturePlan,
    SessionOptions,
    plan_capture,
    session_path,
)
from proton_bench.recording.session.output import check_writable, write_session
from proton_bench.recording.session.output_format import check_formats
from proton_bench.recording.session.provenance import end_facts, start_facts
from proton_bench.recording.session.steps import steady_facts
from proton_bench.recording.stderr import warn

if TYPE_CHECKING:
    from proton_bench.model.profile import Profile


_DRIFT = "clock_drift_ns"


def write_meanwhile(core: native.Session, plan: CapturePlan) -> None:
    """Have the native writer thread write what the plan asks for; nothing starts it otherwise.

    Args:
        core: A session that is not active yet.
        plan: What it records.

    Raises:
        BackendUnavailableError: The thread cannot be started.
    """
    path = os.fsencode(plan.path)
    if plan.trace_formats:
        core.stream_timeline(path, plan.trace_formats, _facts(plan))
    if plan.flushing is not None:
        has_trees = plan.flushing.format not in plan.trace_formats
        core.close_phases(path, has_trees, True, plan.flushing.interval_s)  # noqa: FBT003
    elif plan.trace_formats:
        core.close_phases(path, False, False, 0.0)  # noqa: FBT003


def drift_of(collectors: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how much the clock of the devices gained on the host's, nanoseconds.

    Args:
        collectors: Facts of each collector; the largest drift counts.
    """
    drifts = [int(facts[_DRIFT]) for facts in collectors.values() if _DRIFT in facts]
    return max(drifts, key=abs, default=0)


def _facts(plan: CapturePlan) -> dict[str, Any]:
    return {
        "process_name": plan.program,
        "host": os.uname().nodename,
        "upstream_shape": plan.upstream_shape,
        **rank_facts(os.environ),
    }


_FIXMAP, _FIXARRAY, _FIXSTR = 0x80, 0x90, 0xA0
_STR32, _ARRAY32, _MAP32 = 0xDB, 0xDD, 0xDF
_INT64, _UINT64, _DOUBLE = 0xD3, 0xCF, 0xCB
_SMALL_COUNT, _SMALL_TEXT, _SMALL_INT = 16, 32, 128


# The target's process loads no library for this.
def encode_facts(value: object) -> bytes:
    """Encode None, bool, int, float, text, sequences and mappings; anything else as its text.

    Args:
        value: What to encode. Surrogates in texts are escaped; integers beyond 64 bits become
            floats.
    """
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return struct.pack(">Bd", _DOUBLE, value)
    if isinstance(value, Mapping):
        items = [encode_facts(str(key)) + encode_facts(each) for key, each in value.items()]
        return _head(len(items), _SMALL_COUNT, (_FIXMAP, _MAP32)) + b"".join(items)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        items = [encode_facts(each) for each in value]
        return _head(len(items), _SMALL_COUNT, (_FIXARRAY, _ARRAY32)) + b"".join(items)
    text = str(value).encode("utf-8", "backslashreplace")
    return _head(len(text), _SMALL_TEXT, (_FIXSTR, _STR32)) + text


def _integer(value: int) -> bytes:
    if 0 <= value < _SMALL_INT:
        return bytes([value])
    if -(2**63) <= value < 2**63:
        return struct.pack(">Bq", _INT64, value)
    if 0 < value < 2**64:
        return struct.pack(">BQ", _UINT64, value)
    return encode_facts(float(value))


def _head(count: int, small: int, codes: tuple[int, int]) -> bytes:
    if count < small:
        return bytes([codes[0] | count])
    return struct.pack(">BI", codes[1], count)


# Serialises every change of which sessions live and what they switched on.
_lock = threading.RLock()
_live: dict[int, Session] = {}
_successors: dict[int, int] = {}  # the newest by number of the first, which is over
_last: tuple[int, list[Path]] = (0, [])  # how many sessions have ended, the files of the last one
_stopper: threading.Thread | None = None
_is_exiting = threading.Event()
_LOOK_S = 0.05
_MOST_WINDOWS = 256  # of which a profile says when they were
# Counts of a session that stand for something in its profile.
_FACTS = ("ranges", "records", "metrics", "instances")


class Session:
    """A live session. Made by ``open_session``; every method may be called on any thread.

    Attributes:
        id: Number of the session in this process.
        core: Its native session.
        path: Absolute output path without a suffix, or "-" for stdout.
        plan: What the session records and how.
        added_profiles: What other processes recorded for it.
        remarks: What its collectors had to say when it was finalized, for the user to read.
        clock_drift_ns: How much the clock of the devices gained on the host's, known at the end.
        forks: How many processes were forked from this one; they are not recorded.
        windows: The newest times in which it recorded: ``begin_ns`` and ``end_ns`` (unix time),
            and what else is known of them.
        is_windowed: Recording windows decide when it records, not ``start`` of the program.
        is_spare: Its only window began after the last step of the program.
        earlier_remarks: Remarks that were made already, and are not made again.
        end_windows: Opens no further window; before the end of the session.
        skipped_steps: Steps of the program that were not recorded: before the present window, and
            in all.
    """

    def __init__(self, core: native.Session, plan: CapturePlan, lease: CollectorLease) -> None:
        self.id = core.id
        self.core = core
        self.path = plan.path
        self.plan = plan
        self.added_profiles: list[AddedProfile] = []
        self.remarks: list[str] = []
        self.clock_drift_ns = 0
        self.forks = 0
        self.windows: collections.deque[dict[str, int]] = collections.deque(maxlen=_MOST_WINDOWS)
        self.is_windowed = False
        self.is_spare = False
        self.earlier_remarks: set[str] = set()
        self.end_windows: Callable[[], None] = _nothing
        self.skipped_steps = (0, 0)
        self._window_count = 0
        self._is_attached = False  # to what costs the program something between its windows, too
        self._began_ns: int | None = None  # monotonic; None while it does not record
        self._recorded_ns = 0  # until then
        self._stopped_ns: int | None = None  # monotonic; None while it records
        self._lease = lease
        self._joiner: PhaseJoiner | None = None
        self._converter: PhaseConverter | None = None
        self._started = start_facts(plan)
        core.set_provenance(encode_facts(self._started))

    @property
    def name(self) -> str:
        """Output path without a suffix, or "-" for stdout."""
        return self.path

    @property
    def is_live(self) -> bool:
        """Whether the session was not finalized yet."""
        return _live.get(self.id) is self

    @property
    def is_active(self) -> bool:
        """Whether the session records at the moment."""
        return self.is_live and self.core.is_active

    def activate(self) -> None:
        """Go on recording; does nothing while the session is active.

        Raises:
            SessionError: The session was finalized.
        """
        with _lock:
            self._require_live()
            with contextlib.ExitStack() as undo:
                self._lease.start()
                undo.callback(self._lease.stop)
                HookManager.activate(self.id)
                undo.callback(HookManager.deactivate, self.id)
                if not self._is_attached:
                    undo.callback(torch_context.release, self.id)
                    torch_context.hold(
                        self.id,
                        self.plan.context,
                        marks_steps=self.is_windowed,
                        compilations=self.plan.records_wall,
                        memory=self.plan.records_memory,
                    )
                began_ns = time.monotonic_ns()
                self.core.activate()
                if not self._is_attached:
                    undo.callback(self.core.deactivate)
                    self._start_samples(undo)
                self._is_attached = True
                undo.pop_all()
            self._stopped_ns = None
            if self._began_ns is None:
                self._begin_window(began_ns)
            _tell_of_rest()

    def _start_samples(self, undo: contextlib.ExitStack) -> None:
        undo.callback(stop_host_samples, self.id)
        start_host_samples(self.id, self.plan.host_rate_hz)
        start_counters(self.id, self.plan.counter_rate_hz, gpm=wants_gpm(self.plan.modes))

    def _begin_window(self, began_ns: int) -> None:
        self._began_ns = began_ns
        begin_ns = began_ns + int(self._started["realtime_base_ns"])
        if self._window_count == 0 and self.is_windowed:
            self._started["start_time_ns"] = begin_ns
        self._window_count += 1
        self.windows.append({"begin_ns": begin_ns})
        self._tell_core()

    def _tell_core(self) -> None:
        """Have files that are written meanwhile say what is known so far."""
        facts = self._started
        if self.is_windowed:
            facts = facts | self._window_facts(time.monotonic_ns())
            if self._began_ns is not None:
                del facts["recorded_ns"]  # it goes on
        self.core.set_provenance(encode_facts(facts))

    @property
    def has_window(self) -> bool:
        """Whether it recorded anything that is not spare."""
        return bool(self.windows) and not self.is_spare

    def warm_up(self) -> None:
        """Start the collectors before ``activate``, so that no window begins with that."""
        with _lock:
            self._require_live()
            self._lease.start()

    def rest(self) -> None:
        """Stop recording, and leave the program as without a profiler until ``activate``.

        Raises:
            SessionError: The session was finalized.
        """
        self.settle()
        with _lock:
            self._lease.detach()
            stop_host_samples(self.id, goes_on=True)
            self.hold_dormant()
            self._is_attached = False
            _tell_of_rest()

    def hold_dormant(self) -> None:
        """Follow torch as little as a session does that waits for a window."""
        torch_context.hold(
            self.id,
            self.plan.context,
            marks_steps=True,
            memory=self.plan.records_memory,
            is_dormant=True,
        )

    @property
    def is_resting(self) -> bool:
        """Whether it waits for a recording window, and costs nothing."""
        return not self._is_attached

    def deactivate(self, *, flushing: bool = False) -> None:
        """Stop recording and keep what was recorded; does nothing while it is not active.

        Args:
            flushing: Wait until the work submitted so far is recorded.

        Raises:
            SessionError: The session was finalized.
        """
        self._stop(self.core.deactivate, flushing=flushing)

    def settle(self) -> None:
        """Stop recording for good, once all that was submitted is recorded; finalize it next.

        Raises:
            SessionError: The session was finalized.
        """
        with _lock:
            self._require_live()
            stop_counters(self.id)  # takes the last sample, so while the session is active
        self.deactivate(flushing=True)

    def _stop(self, stop: Callable[[], None], *, flushing: bool) -> None:
        with _lock:
            self._require_live()
            with contextlib.ExitStack() as steps:  # last in, first out, whatever fails
                steps.callback(_stop_unused_later)
                steps.callback(self._lease.stop)
                steps.callback(HookManager.deactivate, self.id)
                steps.callback(stop)
                if flushing:
                    flush_host_samples()
                    self._lease.flush()
                    HookManager.flush(self.id)
                    native.drain()
            # What is done after that, such as reading the profile, does not belong to the run.
            now_ns = time.monotonic_ns()
            self._stopped_ns = self._stopped_ns or now_ns
            if self._began_ns is not None:
                self._recorded_ns += now_ns - self._began_ns
                self._began_ns = None
                self.windows[-1]["end_ns"] = now_ns + int(self._started["realtime_base_ns"])
                self._tell_core()

    def add_profile(self, added: AddedProfile) -> None:
        """Make what other processes recorded part of this session's current phase and files.

        Raises:
            SessionError: The session was finalized.
        """
        with _lock:
            self._require_live()
            self.added_profiles.append(added)

    def profile(self, phase: int | None = None) -> Profile:
        """Return what was recorded so far, the way a reader of the file would see it.

        Args:
            phase: Number of the phase; None is the current one.

        Raises:
            SessionError: The session was finalized, or has no such phase.
        """
        with _lock:
            self._require_live()
            flush_host_samples()
            self._lease.flush()
            HookManager.flush(self.id)
            native.drain()
            value_works()
            current = self.core.current_phase()
            number = current if phase is None else phase
            if current == 0:  # else the file is about a part of the time since the start
                self.core.set_provenance(encode_facts(self._facts_so_far()))
            encoded = self.core.encode(number, "proton")
            self._tell_core()
            added = list(self.added_profiles) if number == current else []
        from proton_bench.formats.registry import find_format

        own = find_format("proton").decode(encoded, f"session {self.id}")
        return merge_added(own, added)

    def _facts_so_far(self) -> dict[str, Any]:
        if self._stopped_ns is not None:
            ended = end_facts(self._started, self.core.counts(), self._stopped_ns)
            ended |= self._window_facts(self._stopped_ns)
            ended = groups.rank_facts() | ended
            ended["collectors"] = self._lease.facts()
            if loaders := loader_facts():
                ended["data_loaders"] = loaders
            return {**ended, "forked_children": self.forks} if self.forks else ended
        now_ns = time.monotonic_ns()
        ended_ns = now_ns + int(self._started["realtime_base_ns"])
        facts = {**self._started, "end_time_ns": ended_ns}  # no more, while the program waits
        return facts | self._window_facts(now_ns)

    def _window_facts(self, now_ns: int) -> dict[str, Any]:
        """Return when the session recorded, {} if that was all the time."""
        if self._window_count == 1 and not self.is_windowed:
            return {}
        running_ns = 0 if self._began_ns is None else now_ns - self._began_ns
        return {
            "recorded_ns": self._recorded_ns + running_ns,
            "window_count": self._window_count,
            "windows": list(self.windows),
        }

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Add to the provenance what became known of the run.

        Args:
            facts: Texts, numbers, and mappings and lists of them, by key.

        Raises:
            SessionError: The session was finalized.
        """
        with _lock:
            self._require_live()
            self._started.update(facts)
            self._tell_core()

    def counts(self) -> dict[str, int]:
        """Return how many records of each kind came and how many were lost, by name."""
        with _lock:
            self._require_live()
            return add_counts(self.core.counts(), self.added_profiles)

    @property
    def has_records(self) -> bool:
        """Whether the program did anything that a backend records."""
        counts = self.counts()
        return any(counts[kind] for kind in _FACTS)

    def finalize(self, formats: Sequence[str] = ("proton", "hatchet")) -> list[Path]:
        """Stop recording, write the files and forget the session, also when writing fails.

        A Ctrl-C meanwhile acts when that is done; a second one ends the process.

        Args:
            formats: Suffixes without the dot of the files to write; none writes nothing.

        Returns:
            The files; none for stdout. A session that was finalized before writes nothing.

        Raises:
            UsageError: A format is unknown; the session stays as it is.
            OutputError: A file cannot be written.
        """
        check_formats(formats, self.plan.data, self.plan.writable_timelines)
        with uninterrupted() as interrupts:
            paths = self._finalize(formats)
        if interrupts:
            signal.raise_signal(signal.SIGINT)
        return paths

    def _finalize(self, formats: Sequence[str]) -> list[Path]:
        with _lock:
            if not self.is_live:
                return []
            with contextlib.ExitStack() as steps:
                steps.callback(self._forget)
                # On an error the partial files stay.
                steps.callback(self.core.release_partials, is_written=False)
                self.core.begin_final_write()
                steps.callback(self._lease.release)
                steps.callback(HookManager.unregister, self.id)
                stop_counters(self.id)  # takes the last sample, so while the session is active
                self._stop(self.core.end_recording, flushing=True)
                value_works()
                left_out = self._store_counters(formats)
                self.core.settle()
                if self._converter is not None:
                    steps.callback(self._converter.end)  # after the files of this end
                counts = self.core.counts()
                ended = self._facts_so_far()
                self.remarks = [] if self.added_profiles else self._lease.remarks(counts)
                self.remarks += left_out
                self.remarks = [each for each in self.remarks if each not in self.earlier_remarks]
                self.earlier_remarks.update(self.remarks)
                self.clock_drift_ns = drift_of(ended["collectors"])
                if self.plan.is_written_meanwhile:
                    ended["timeline"] = self.core.timeline_counts()
                if wants_gpm(self.plan.modes):
                    ended["gpm"] = take_gpm_facts(self.id)
                    ended |= ceiling_facts(ended.get("gpus_at_start", ()))
                began_ns = int(self._started["start_time_ns"]) - int(
                    self._started["realtime_base_ns"]
                )
                calls = collective_facts(began_ns, self._stopped_ns or time.monotonic_ns())
                self.core.set_provenance(encode_facts(ended | calls))
                if steady := self._steady_facts(ended):
                    self.core.add_steady(encode_facts(steady))
                paths = write_session(self, formats)
                self.core.release_partials(is_written=True)
        global _last
        _last = (_last[0] + 1, paths)
        _call_plugins("proton_session_finished", session=self, paths=paths)
        return paths

    def _steady_facts(self, ended: Mapping[str, Any]) -> dict[str, Any] | None:
        if not self.plan.follows_steps or self.added_profiles:
            return None
        base_ns = int(self._started["realtime_base_ns"])
        return steady_facts(ended, base_ns, self.skipped_steps)

    def _store_counters(self, formats: Sequence[str]) -> list[str]:
        """Join the phases that are left, before any is written; return what to say of them all."""
        if self._joiner is not None:
            self._joiner.end()
        problem = self._joiner.problem if self._joiner else ""
        if formats or self.plan.flushing is not None:
            left = store_counters(self.core, has_timeline=bool(self.plan.trace_formats))
            problem = problem or left
        self.core.end_joins()
        if not problem:
            return []
        return [f"hardware counters are left out, they could not be joined: {problem}"]

    def join_meanwhile(self) -> None:
        """Join phases with counters that are written while the session records; before it does."""
        if self.plan.is_written_meanwhile and wants_bursts(self.plan.modes):
            self._joiner = PhaseJoiner(self.core, has_timeline=bool(self.plan.trace_formats))

    def convert_meanwhile(self) -> None:
        """Convert phases that are written while the session records; before it does."""
        flushing = self.plan.flushing
        if flushing is None or flushing.format in ("proton", *self.plan.trace_formats):
            return
        convert = functools.partial(
            convert_file, name=flushing.format, upstream_shape=self.plan.upstream_shape
        )
        self._converter = PhaseConverter(self.core, convert, self.path)

    def end_threads(self) -> None:
        """Join and convert no more of them until the end."""
        if self._joiner is not None:
            self._joiner.end()
        if self._converter is not None:
            self._converter.stop()

    def _forget(self) -> None:
        self.end_threads()
        stop_host_samples(self.id)
        _live.pop(self.id, None)
        _tell_of_rest()
        torch_context.release(self.id)
        flags.profiling_on = bool(_live)
        if not _live:
            leave_tasks()
        flags.upstream_shape = any(each.plan.upstream_shape for each in _live.values())
        self.core.remove()

    def _require_live(self) -> None:
        if not self.is_live:
            raise unknown_session(self.id)


def _nothing() -> None:
    pass


def open_session(
    options: SessionOptions, *, is_dormant: bool = False, follows: int | None = None
) -> Session:
    """Start a session; on any error nothing is left switched on and no number is used up.

    A live session with the same output path is activated again and returned; the other options
    are not looked at then.

    Args:
        options: What it records.
        is_dormant: It records from its first ``activate`` on, and costs nothing until then.
        follows: Number of a session that is over, which stands for this one from now on.

    Raises:
        UsageError: An option is wrong, or does not fit the other sessions.
        BackendUnavailableError: A backend cannot run here.
        OutputError: The output cannot be written.
    """
    with _lock:
        path = session_path(options.name)
        known = next((each for each in _live.values() if each.path == path), None)
        if known is not None and is_dormant:
            raise UsageError(f"{path} is being recorded already: give another name")
        if known is not None:
            known.activate()
            return known
        plan = plan_capture(options)
        check_writable(plan.path)
        session = _start(plan, is_dormant=is_dormant)
        if follows is not None:
            _successors[follows] = session.id
        _tell_of_rest()
    _call_plugins("proton_session_started", session=session)
    return session


def _tell_of_rest() -> None:
    is_resting = bool(_live) and all(each.is_resting for each in _live.values())
    for listener in launch_hooks.rest_listeners:
        listener(is_resting)


def last_files() -> tuple[int, list[Path]]:
    """Return how many sessions have ended in this process, and the files of the last one."""
    return _last


def find_session(identifier: int) -> Session | None:
    """Return a live session by its number, or that of one that it follows, or None."""
    return _live.get(_successors.get(identifier, identifier))


def known_session(identifier: int) -> Session:
    """Return a live session by its number.

    Raises:
        SessionError: There is none; the message names the live ones.
    """
    session = find_session(identifier)
    if session is None:
        raise unknown_session(identifier)
    return session


def live_sessions() -> list[Session]:
    """Return the sessions that were not finalized yet, oldest first."""
    with _lock:
        return list(_live.values())


def unknown_session(identifier: object) -> SessionError:
    """Return the error for a number that no live session has."""
    known = ", ".join(str(number) for number in _live) or "none"
    return SessionError(f"Session has not been initialized: {identifier}; live sessions: {known}")


def _start(plan: CapturePlan, *, is_dormant: bool) -> Session:
    with contextlib.ExitStack() as undo:
        lease = lease_collectors(f"session {plan.path!r}", plan.backends, plan.modes)
        undo.callback(lease.release)
        if not is_dormant:
            lease.start()  # what fails uses no number up
        if plan.hook is not None:
            launch_hooks.switch_on(plan.hook)
            undo.callback(launch_hooks.switch_off_unused, [plan.hook])
        own_timeline = plan.has_own_timeline
        core = native.Session(plan.context, plan.records_wall, own_timeline, plan.upstream_shape)
        undo.callback(core.remove)
        if plan.host_rate_hz:
            core.sample_host()
        if plan.follows_steps and not wants_bursts(plan.modes):  # bursts miss most steps
            core.follow_steps()
        prepare(plan.end_formats)
        write_meanwhile(core, plan)
        session = Session(core, plan, lease)
        undo.callback(session.end_threads)
        session.join_meanwhile()
        session.convert_meanwhile()
        if plan.hook is not None:
            HookManager.register(plan.hook, core.id)
            undo.callback(HookManager.unregister, core.id)
        undo.callback(_live.pop, core.id)
        _live[core.id] = session
        if is_dormant:
            session.is_windowed = True
            prepare_host_samples(plan.host_rate_hz)
            HookManager.deactivate(core.id)
            undo.callback(torch_context.release, core.id)
            session.hold_dormant()
        else:
            session.activate()
        undo.pop_all()
    flags.profiling_on = True
    follow_tasks()
    flags.upstream_shape |= plan.upstream_shape
    return session


@functools.cache
def _plugins() -> Callable[[], Any]:
    """Return what returns the plugins; loaded for a session, and so there at its end."""
    from proton_bench.plugin.manager import get_plugin_manager

    return get_plugin_manager


def _call_plugins(hook: str, **arguments: object) -> None:
    _plugins()().call(hook, **arguments)


def _stop_unused_later() -> None:
    """Stop collectors that a graph capture keeps running, once it ends."""
    global _stopper
    if stop_unused() or _stopper is not None or _is_exiting.is_set():
        return
    _stopper = threading.Thread(target=_stop_after_captures, name="proton_bench", daemon=True)
    _stopper.start()


def _stop_after_captures() -> None:
    global _stopper
    was_open = True
    while not _is_exiting.wait(_LOOK_S):
        # Twice: by then the graph is instantiated, or the next one begun.
        was_open, before = native.any_capture_open(), was_open
        with _lock:
            if not (was_open or before) and _try_to_stop():
                _stopper = None
                return


def _try_to_stop() -> bool:
    try:
        return stop_unused()
    except Exception as error:  # noqa: BLE001 - it would be lost on this thread
        warn(f"a collector did not stop after a graph was captured: {error}")
        return True


def _at_exit() -> None:
    """No thread may be in native code when the interpreter ends."""
    stopper = _stopper
    _is_exiting.set()
    for session in list(_live.values()):
        session.end_threads()
    if stopper is not None:
        stopper.join()


def _after_fork_in_child() -> None:
    """A child records nothing until it starts a session of its own."""
    global _lock, _stopper, _is_exiting
    _stopper, _is_exiting = None, threading.Event()
    _lock = threading.RLock()  # the forking thread's siblings may have held the old one
    _live.clear()
    HookManager.active_hooks = []
    HookManager.session_hooks.clear()
    forget_after_fork()
    forget_samples()
    torch_context.forget_after_fork()
    forget_loaders()
    flags.profiling_on = flags.upstream_shape = False


def _after_fork_in_parent() -> None:
    """Count a child, unless subprocess forked it to run another program."""
    caller = sys._getframe(1)
    if os.path.basename(caller.f_code.co_filename) == "subprocess.py":
        return
    for session in list(_live.values()):
        session.forks += 1


os.register_at_fork(after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
atexit.register(_at_exit)

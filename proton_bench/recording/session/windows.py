"""Recording windows: a run is recorded in some of its steps or times, and rests in between.

Outside of its windows a session is dormant: nothing is subscribed, observed or sampled. Steps are
counted by the marks that a program shows without a profiler, see `StepCount`.
"""

from __future__ import annotations

import abc
import contextlib
import enum
import functools
import math
import os
import queue
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from proton_bench.errors import ProtonError, UsageError
from proton_bench.recording.native import native
from proton_bench.recording.session.interrupts import uninterrupted
from proton_bench.recording.session.options import STDOUT, SessionOptions, session_path
from proton_bench.recording.session.output import library_formats
from proton_bench.recording.session.partials import library_asks, write_partials
from proton_bench.recording.session.recording import Session, live_sessions, open_session
from proton_bench.recording.session.steps import Mark, mark_listeners
from proton_bench.recording.session.window_triggers import checked_trigger, watch_trigger
from proton_bench.recording.stderr import warn

_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)|(\d+)")
_STEPS = re.compile(r"(\d*):(\d*)")
_MARKED_BY = {
    "optimizer": "by its first optimizer",
    "profiler": "by torch.profiler",
    "declared": "by proton_bench.step()",
}
_LONGEST_S = 1e8
_FILE_PERIOD_S = 0.25
_TOGGLE = "toggle"
# A later mark is believed rather than an earlier one, as in the finder of steady steps.
_RANKS = {"optimizer": 1, "profiler": 2, "declared": 3}


class Amount(NamedTuple):
    """A number of steps, or a time in seconds."""

    value: float
    is_time: bool = False

    @classmethod
    def read(cls, option: str, text: str) -> Amount:
        """Read the value of an option.

        Raises:
            UsageError: It is neither a number of steps nor a time.
        """
        match = _AMOUNT.fullmatch(text.strip())
        if match is None:
            raise UsageError(
                f"{option} {text!r} is neither steps nor a time: give a whole number of steps such "
                "as 10, or a time with its unit, such as 500ms, 10s, 2m or 1h"
            )
        value = float(match[1] or match[3]) * _SECONDS.get(match[2], 1.0)
        if value > _LONGEST_S:
            raise UsageError(f"{option} {text!r} is too large: give at most {_LONGEST_S:.0f}")
        return cls(value, match[2] is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """When a run is recorded.

    Attributes:
        after: Start of the first window.
        every: From the start of one window to that of the next; None for one window.
        length: Of a window; None for until the end.
        align_s: A window begins at a multiple of it by the clock; 0 for at once.
        is_apart: Each window has a file of its own.
        trigger: What opens and closes windows instead, as `checked_trigger` returns it.
    """

    after: Amount
    every: Amount | None = None
    length: Amount | None = None
    align_s: float = 0.0
    is_apart: bool = False
    trigger: str = ""

    @classmethod
    def read(cls, texts: Mapping[str, str]) -> WindowPlan:
        """Read the options of ``proton run``.

        Args:
            texts: Values of options by their names without dashes; those not given are left out.

        Raises:
            UsageError: A value is wrong, or two options do not go together.
        """
        _check_together(set(texts))
        given = {name: Amount.read(f"--{name}", texts[name]) for name in _AMOUNTS & set(texts)}
        for name in ("for", "every", "align"):
            if name in given and not given[name].value:
                raise UsageError(f"--{name} 0 records nothing: give more than 0")
        if "align" in given and not given["align"].is_time:
            raise UsageError(f"--align {texts['align']} is not a time: give one, such as 10s")
        if "steps" in texts:
            given |= _steps(texts["steps"])
        every, length = given.get("every"), given.get("for")
        is_same = every and length and every.is_time == length.is_time
        if every and length and is_same and length.value >= every.value:
            raise UsageError(
                f"--for {texts['for']} fills all of --every {texts['every']}: give a shorter one"
            )
        return cls(
            after=given.get("after", every or Amount(0)),
            every=every,
            length=length,
            align_s=given["align"].value if "align" in given else 0.0,
            is_apart="each" in texts,
            trigger=checked_trigger(texts["window-on"]) if "window-on" in texts else "",
        )


_AMOUNTS = {"after", "every", "for", "align"}
_EXCLUDING = {"steps": {"after", "every", "for"}, "window-on": {"steps", "after", "every"}}


def _check_together(names: set[str]) -> None:
    for name in sorted(names & _EXCLUDING.keys()):
        for other in sorted(names & _EXCLUDING[name]):
            raise UsageError(f"--{name} and --{other} exclude each other: give one of them")
    if names == {"each"}:
        raise UsageError(
            "--each needs windows: add --steps, --after, --every, --for or --window-on"
        )
    if "every" in names and "for" not in names:
        raise UsageError("--every needs the length of a window: add --for")


def _steps(text: str) -> dict[str, Amount]:
    match = _STEPS.fullmatch(text.strip())
    first, end = (int(match[1] or 0), int(match[2] or 0)) if match else (0, 0)
    if match is None or text.strip() == ":" or (match[2] and end <= first):
        raise UsageError(
            f"--steps {text!r} names no steps: give the first and the one after the last, counted "
            "from 0, such as 10:20, :20 or 10:"
        )
    steps = {"after": Amount(first)}
    return {**steps, "for": Amount(end - first)} if match[2] else steps


class StepCount:
    """How many steps of the program are over, by the best mark so far."""

    def __init__(self) -> None:
        self.by = ""
        self.over = 0

    def add(self, mark: str) -> bool:
        """Count a mark; return whether it is of the kind that counts."""
        if mark == self.by:
            self.over += 1
        elif _RANKS.get(mark, 0) > _RANKS.get(self.by, 0):
            self.by = mark
            self.over = max(self.over, 1)  # it ends the step that the last mark ended
        return mark == self.by


class Windows(abc.ABC):
    """Opens and closes the recording windows of a session, and of those that follow it.

    Args:
        options: What they record.
        formats: What is written of each window that has a file of its own; None for what a session
            of the library writes.
        is_apart: Each window has one, NAME.w1, NAME.w2, ...
        has_partials: What was recorded so far is written while the program runs.

    Attributes:
        is_apart: As above.
        session: The present session.
        paths: Files of windows that are over, where they have files of their own.
        opened: How many windows there were.
        steps: How many steps of the program are over.
        has_failed: A window could not begin or be written, so that there are no more.
    """

    marks = frozenset(_RANKS)
    _is_in_steps = True  # whether windows end at marks

    def __init__(
        self,
        options: SessionOptions,
        formats: tuple[str, ...] | None,
        *,
        is_apart: bool,
        has_partials: bool,
    ) -> None:
        self.is_apart = is_apart
        self.paths: list[Path] = []
        self.opened = 0
        self.steps = StepCount()
        self.has_failed = False
        self._options = options
        self._path = session_path(options.name)
        self._formats = formats
        self._has_partials = has_partials
        self._lock = threading.RLock()
        self._process_id = os.getpid()
        self._is_open = False
        self._is_over = False
        self._first_step = 0
        self._marks_recorded = 0  # of the kind that counts, also by other sessions
        self._remarks: set[str] = set()
        self.session = self._renewed(".w1" if is_apart else "", None)
        self._first_id = self.session.id
        mark_listeners.append(self._marked)

    def _renewed(self, suffix: str, follows: int | None) -> Session:
        named = replace(self._options, name=self._path + suffix)
        session = open_session(named, is_dormant=True, follows=follows)
        if self._has_partials:
            write_partials(session, self._formats_of(session))
        session.end_windows = self.end
        session.earlier_remarks = self._remarks
        return session

    def _formats_of(self, session: Session) -> tuple[str, ...]:
        if self._formats is None:
            return library_formats("", session.plan.end_formats)
        return self._formats

    def _begin(self, first: Callable[[], None]) -> None:
        """Open the window with which the program begins, or fail as a session without windows."""
        try:
            with self._lock:
                first()
        except BaseException:
            self.end()
            self.session.finalize(())
            raise

    def end(self) -> None:
        """Open no more windows; one that is open lasts until its session ends."""
        with contextlib.suppress(ValueError):
            mark_listeners.remove(self._marked)
        with self._lock:
            self._is_over = True
            if self._is_open and self.session.is_live:
                self._note_steps()
                is_unused = self.steps.over == self._first_step > 0
                self.session.is_spare = self.is_apart and self._is_in_steps and is_unused
            self._tell_skipped()

    def _open(self) -> None:
        self.session.activate()
        self._is_open = True
        self.opened += 1
        self._first_step = self.steps.over
        self._tell_skipped(begins=True)

    def _close(self, *, ends_file: bool) -> None:
        with uninterrupted() as interrupts:
            self._close_window(ends_file=ends_file)
        if interrupts:
            signal.raise_signal(signal.SIGINT)

    def _close_window(self, *, ends_file: bool) -> None:
        self.session.rest()
        self._is_open = False
        self._note_steps()
        if not ends_file:
            return
        former = self.session
        self.paths += former.finalize(self._formats_of(former))
        for remark in former.remarks:
            warn(remark)
        if not any(each.plan.follows_steps for each in live_sessions()):
            self._marks_recorded = 0  # they are counted anew
        self.session = self._renewed(f".w{self.opened + 1}", self._first_id)

    def _note_steps(self) -> None:
        if self.steps.over:
            window = self.session.windows[-1]
            window["first_step"] = self._first_step
            window["steps"] = self.steps.over - self._first_step
        self._tell_skipped()

    def _tell_skipped(self, *, begins: bool = False) -> None:
        """Tell the session how many steps were not recorded, in all and before this window."""
        skipped = max(self.steps.over - self._marks_recorded, 0)
        self.session.skipped_steps = (skipped if begins else self.session.skipped_steps[0], skipped)

    def _marked(self, mark: Mark, name: str, is_recorded: bool) -> None:  # noqa: FBT001
        if self._is_over or mark not in self.marks or os.getpid() != self._process_id:
            return
        with self._lock:
            former = self.steps.by
            if not self.session.is_live or not self.steps.add(mark):
                return
            if self.steps.by != former:
                self._marks_recorded = 0
            self._marks_recorded += is_recorded
            self._try(self._next_step)
            # It begins the window; a session that it ended took it along.
            if self._is_open and not (is_recorded and self._marks_recorded):
                self._marks_recorded += native.mark_step(mark, name)
            if self._is_open:
                self._tell_skipped(begins=True)

    def _try(self, change: Callable[[], None]) -> None:
        """Open or close a window; no failure of it gets into the program. With the lock held."""
        if self._is_over or not self.session.is_live:
            return
        try:
            change()
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._is_over = self.has_failed = True
            what = "" if isinstance(error, ProtonError) else f"{type(error).__name__}: "
            warn(f"no further window is recorded: {what}{error}")

    @abc.abstractmethod
    def _next_step(self) -> None:
        """A step began: open or close. With the lock held."""


class PlannedWindows(Windows):
    """The windows that the options of ``proton run`` ask for.

    A window whose length is in steps begins and ends at marks of steps; others begin at once.

    Args:
        plan: When they are; times count from now.
        options: What they record.
        formats: What is written.
    """

    def __init__(self, plan: WindowPlan, options: SessionOptions, formats: tuple[str, ...]) -> None:
        super().__init__(options, formats, is_apart=plan.is_apart, has_partials=True)
        self._plan = plan
        self._is_in_steps = plan.length is not None and not plan.length.is_time
        self._start: Amount | None = None if plan.trigger else self._from_now(plan.after)
        self._end: Amount | None = None
        self._next_start: Amount | None = None
        self._is_aligned = False
        # A handler of a signal may put something in.
        self._wakes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._file = plan.trigger.removeprefix("file:") if plan.trigger[:5] == "file:" else ""
        self._has_file = False
        self._clock: threading.Thread | None = None
        self._unwatch = watch_trigger(plan.trigger, self) if plan.trigger else None
        self._begin(self._start_now)
        is_timed = plan.align_s or any(each and each.is_time for each in (plan.after, plan.length))
        if is_timed or plan.trigger:
            self._clock = threading.Thread(target=self._run, name="proton_bench", daemon=True)
            self._clock.start()

    def _start_now(self) -> None:
        self._look()
        self._advance(is_at_mark=True)

    def end(self) -> None:
        """As of `Windows`; no thread goes on."""
        super().end()
        if self._unwatch is not None:
            self._unwatch()
        clock, self._clock = self._clock, None
        if clock is not None:
            self._wakes.put("")
            clock.join()

    def toggle(self) -> None:
        """Have the clock open a window, or close it. May be called by a handler of a signal."""
        self._wakes.put(_TOGGLE)

    def switch(self, *, on: bool) -> None:
        """Open a window, or close it; does nothing where it is so."""
        if os.getpid() == self._process_id:
            with self._lock:
                self._try(functools.partial(self._switch, on=on))
            self._wakes.put("")

    def _switch(self, *, on: bool) -> None:
        self._is_aligned = False
        if not on:
            self._start = None
            if self._is_open:
                self._close(ends_file=self.is_apart)
        elif not self._is_open:
            self._start = Amount(time.monotonic(), is_time=True)
            self._advance(is_at_mark=False)

    def _look(self) -> None:
        if self._file and os.path.exists(self._file) != self._has_file:
            self._has_file = not self._has_file
            self._switch(on=self._has_file)

    def missed(self) -> str:
        """Return why there was no window, "" if there was one."""
        if self.opened:
            return ""
        if self.has_failed:
            return "nothing was recorded: no window could begin"
        text = "nothing was recorded, the program was over before a window began"
        if self._plan.trigger and self._start is None:
            return f"{text}: nothing opened one, see --window-on {self._plan.trigger}"
        if self._plan.after.is_time and not self._waits_for_mark:
            return text
        if self.steps.by:
            return f"{text}: it had {self.steps.over} steps ({_MARKED_BY[self.steps.by]})"
        return (
            f"{text}: it marked no steps; call proton_bench.step() at the end of each, or record "
            "by time, such as --after 60s --for 10s"
        )

    def _from_now(self, amount: Amount) -> Amount:
        now = time.monotonic() if amount.is_time else self.steps.over
        return Amount(now + amount.value, amount.is_time)

    def _is_past(self, due: Amount | None) -> bool:
        if due is None:
            return False
        return (time.monotonic() if due.is_time else self.steps.over) >= due.value

    @property
    def _waits_for_mark(self) -> bool:
        return not self._is_open and self._is_in_steps

    def _next_step(self) -> None:
        self._advance(is_at_mark=True)
        if self._clock is not None:
            self._wakes.put("")

    def _advance(self, *, is_at_mark: bool) -> None:
        """Close and open what is due."""
        if self._is_open:
            if not self._is_past(self._end):
                return
            self._close(ends_file=self._plan.is_apart)
            self._start = self._next_start
        if not self._is_past(self._start):
            return
        if self._plan.align_s and not self._is_aligned:
            self._is_aligned = True
            self._start = _aligned(self._plan.align_s)
        elif is_at_mark or not self._waits_for_mark:
            self._is_aligned = False
            self._open()
            plan = self._plan
            self._end = None if plan.length is None else self._from_now(plan.length)
            self._next_start = None if plan.every is None else self._from_now(plan.every)

    def _run(self) -> None:
        while not self._is_over:
            wake = ""
            with contextlib.suppress(queue.Empty):
                wake = self._wakes.get(timeout=self._wait_s())
            with self._lock:
                self._try(functools.partial(self._tick, wake))

    def _tick(self, wake: str) -> None:
        if wake == _TOGGLE:
            self._switch(on=not self._is_open and self._start is None)
        self._look()
        self._advance(is_at_mark=False)

    def _wait_s(self) -> float | None:
        """Return how long the clock has nothing to do, None: until it is woken."""
        with self._lock:
            due = self._end if self._is_open else self._start
            idle_s = _FILE_PERIOD_S if self._file else None
            if self._is_over or due is None or not due.is_time:
                return idle_s
            left_s = max(due.value - time.monotonic(), 0.0)
            if not left_s and self._waits_for_mark:
                return idle_s
            return left_s if idle_s is None else min(left_s, idle_s)


class Action(enum.Enum):
    """What is done in a step; torch's ``ProfilerAction`` has the same names."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


Schedule = Callable[[int], Any]


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], Action]:
    """Return a schedule of windows for ``start``, as ``torch.profiler.schedule`` does.

    Args:
        wait: Steps of a cycle that are not recorded.
        warmup: Steps after them in which collectors run already, and record nothing.
        active: Steps after these that are recorded, as one window with a file of its own.
        repeat: Cycles; 0 goes on until the end.
        skip_first: Steps before the first cycle.

    Raises:
        UsageError: A number is negative, or there are no active steps.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise UsageError("a schedule needs active steps, at least 1, and no negative number")
    length = wait + warmup + active

    def action_of(step: int) -> Action:
        cycle, place = divmod(step - skip_first, length)
        if cycle < 0 or (repeat and cycle >= repeat) or place < wait:
            return Action.NONE
        if place < wait + warmup:
            return Action.WARMUP
        return Action.RECORD if place < length - 1 else Action.RECORD_AND_SAVE

    return action_of


class ScheduledWindows(Windows):
    """The windows of a schedule, whose steps end where the program calls ``step()``.

    Args:
        schedule: Returns what to do in a step, from 0; ours or one of ``torch.profiler``.
        options: What they record.
        formats: See `Windows`.
        is_apart: See `Windows`.

    Raises:
        UsageError: It is not a schedule, or the files of windows have no name.
    """

    marks = frozenset({"declared"})

    def __init__(
        self,
        schedule: Schedule,
        options: SessionOptions,
        formats: tuple[str, ...] | None = None,
        *,
        is_apart: bool = True,
    ) -> None:
        if is_apart and session_path(options.name) == STDOUT:
            raise UsageError("each window of a schedule has its own file: name them with name=")
        self._schedule = schedule
        self._action = _action(schedule, 0)
        super().__init__(options, formats, is_apart=is_apart, has_partials=library_asks())
        self._begin(self._act)

    def _next_step(self) -> None:
        if self._is_open and self._action is Action.RECORD_AND_SAVE:
            self._close(ends_file=self.is_apart)
        self._action = _action(self._schedule, self.steps.over)
        self._act()

    def _act(self) -> None:
        is_recorded = self._action in {Action.RECORD, Action.RECORD_AND_SAVE}
        if is_recorded and not self._is_open:
            self._open()
        elif self._is_open and not is_recorded:
            self._close(ends_file=False)
        if self._action is Action.WARMUP:
            self.session.warm_up()


def _action(schedule: Any, step: int) -> Action:
    given = schedule(step) if callable(schedule) else schedule
    try:
        return Action[getattr(given, "name", "")]
    except KeyError:
        raise UsageError(
            f"schedule= gives {given!r} for step {step}: take proton_bench.schedule(...) or "
            "torch.profiler.schedule(...)"
        ) from None


def _aligned(period_s: float) -> Amount:
    """Return the next multiple of a period of unix time, by the monotonic clock."""
    now_s = time.time()
    return Amount(time.monotonic() + math.ceil(now_s / period_s) * period_s - now_s, is_time=True)

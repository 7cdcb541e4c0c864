from __future__ import annotations

import ctypes
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from proton_bench.analysis.name_filter import matches
from proton_bench.errors import UsageError
from proton_bench.patience import within_time

LONG = "a" * 40
ENDLESS = re.compile("(a|a)+$")


def forever() -> bytes:
    ENDLESS.match(f"{LONG}!")
    return b""


@pytest.fixture
def c_handler() -> Iterator[Callable[[], int | None]]:
    """Install a handler as C code does, and give what the address of the handler now is."""
    library = ctypes.CDLL(None)
    library.signal.restype = ctypes.c_void_p
    library.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    before = library.signal(signal.SIGVTALRM, ctypes.cast(library.abs, ctypes.c_void_p))

    def current() -> int | None:
        found: int | None = library.signal(signal.SIGVTALRM, None)
        library.signal(signal.SIGVTALRM, found)
        return found

    yield current
    library.signal(signal.SIGVTALRM, before)


def in_thread(work: Callable[[], object]) -> list[object]:
    """Return what some work in another thread gave or raised."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(work())
        except UsageError as error:
            found.append(type(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    return found


def test_the_main_thread_is_interrupted_without_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")

    with pytest.raises(UsageError, match="too long"):
        within_time(0.05, "too long", forever)

    assert within_time(5.0, "", lambda: b"x") == b"x"
    assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_a_handler_of_the_program_stays() -> None:
    def own(number: int, frame: FrameType | None) -> None:
        del number, frame

    before = signal.signal(signal.SIGVTALRM, own)
    try:
        with pytest.raises(UsageError, match="too long"):
            within_time(0.05, "too long", forever)
        assert within_time(5.0, "", lambda: b"x") == b"x"
        assert signal.getsignal(signal.SIGVTALRM) is own
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGVTALRM, before)


def test_other_threads_are_bounded_too() -> None:
    assert in_thread(lambda: within_time(0.05, "", forever)) == [UsageError]
    assert in_thread(lambda: within_time(5.0, "", lambda: b"x" * 200_000)) == [b"x" * 200_000]
    assert in_thread(lambda: matches(["ab", "b"], "a", "include").tolist()) == [[True, False]]


def test_a_handler_of_c_code_stays(c_handler: Callable[[], int | None]) -> None:
    before = c_handler()

    with pytest.raises(UsageError):
        within_time(0.05, "", forever)

    assert within_time(5.0, "", lambda: b"x") == b"x"
    assert c_handler() == before


def test_a_timer_of_others_goes_on() -> None:
    def own(number: int, frame: FrameType | None) -> None:
        del number, frame

    before = signal.signal(signal.SIGVTALRM, own)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1000.0, 1000.0)
    try:
        with pytest.raises(UsageError):
            within_time(0.05, "", forever)
        left, again = signal.getitimer(signal.ITIMER_VIRTUAL)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)

    assert left > 900
    assert again == 1000.0


def test_a_bound_within_a_bound_leaves_the_outer_one() -> None:
    def nested() -> bytes:
        with pytest.raises(UsageError, match="inner"):
            within_time(0.05, "inner", forever)
        return forever()

    with pytest.raises(UsageError, match="outer"):
        within_time(0.2, "outer", nested)


def test_a_blocked_signal_bounds_as_well() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGVTALRM])
    try:
        with pytest.raises(UsageError):
            within_time(0.05, "", forever)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_work_that_fails_in_a_child_gives_no_result() -> None:
    def fail() -> bytes:
        raise RuntimeError

    assert in_thread(lambda: within_time(5.0, "", fail)) == [UsageError]

"""Samples of the host: every moment of every thread stands somewhere, once."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proton_bench.recording.session.conversion import encode_phase

native = pytest.importorskip("proton_bench._native", reason="the native module is not built")

if not native.can_sample_host:
    pytest.skip("this build of Python has no GIL", allow_module_level=True)

HERE = __file__
LIBC_WITH_GIL = ctypes.PyDLL(None)
SPAN_S = 0.2
LATE_S = 0.1  # that a busy machine may be late with a sample or a measurement


class HostSession:
    """An active session with samples of the host, and what it says."""

    def __init__(self, rate_hz: float = 500.0, *, times_scopes: bool = True) -> None:
        self.core = native.Session("shadow", times_scopes)
        self.core.sample_host()
        self.sampler = native.HostSampler(rate_hz)
        self.core.activate()
        self.started_ns = time.monotonic_ns()
        self.sampler.start()

    def close(self) -> None:
        self.sampler.stop()
        self.core.remove()

    def rows(self, metric: str) -> dict[tuple[str, ...], float]:
        """Return seconds by path, after a sample of now."""
        self.sampler.flush()
        (root, *_) = json.loads(encode_phase(self.core, 0, "hatchet"))
        found: dict[tuple[str, ...], float] = {}

        def visit(node: Any, path: tuple[str, ...]) -> None:
            value = node["metrics"].get(f"{metric} (ns)", 0)
            if value:
                found[path] = found.get(path, 0) + value / 1e9
            for child in node["children"]:
                visit(child, (*path, child["frame"]["name"]))

        visit(root, ())
        return found

    def seconds(self, function: Callable[..., object], metric: str = "host_wall") -> float:
        """Return the time of all rows of a function of this file and below them."""
        end = f"@{function.__name__}"
        return sum(
            value
            for path, value in self.rows(metric).items()
            if any(name.startswith(HERE) and name.endswith(end) for name in path)
        )

    def counted(self) -> float:
        return sum(self.rows("host_wall").values())


@pytest.fixture
def session() -> Iterator[HostSession]:
    opened = HostSession()
    yield opened
    opened.close()


def took(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def wait() -> None:
    threading.Event().wait(SPAN_S)


def compute() -> None:
    end = time.perf_counter() + SPAN_S
    while time.perf_counter() < end:
        sum(range(50))


def hold_the_gil() -> None:
    LIBC_WITH_GIL.usleep(int(SPAN_S * 1e6))


def wait_in_a_loop_of_events() -> None:
    asyncio.run(asyncio.sleep(SPAN_S))


@pytest.mark.parametrize("work", [wait, compute, hold_the_gil, wait_in_a_loop_of_events])
def test_time_stands_at_the_lines_where_it_went(
    session: HostSession, work: Callable[[], None]
) -> None:
    seconds = took(work)

    assert session.seconds(work) == pytest.approx(seconds, rel=0.1, abs=LATE_S)


def test_all_time_of_the_main_thread_is_counted_once(session: HostSession) -> None:
    for work in (wait, compute, hold_the_gil):
        work()
    least = (time.monotonic_ns() - session.started_ns) / 1e9
    counted = session.counted()
    most = (time.monotonic_ns() - session.started_ns) / 1e9

    assert least - LATE_S < counted < most + LATE_S


def test_a_call_that_keeps_the_gil_stands_at_its_own_line(session: HostSession) -> None:
    hold_the_gil()
    line = hold_the_gil.__code__.co_firstlineno + 1

    (longest, seconds) = max(session.rows("host_wall").items(), key=lambda row: row[1])

    assert longest[-1] == f"{HERE}:{line}@hold_the_gil"
    assert seconds > 0.7 * SPAN_S


def test_time_in_an_open_scope_is_the_time_of_the_scope(session: HostSession) -> None:
    native.enter_scope("step", native.KIND_SCOPE)
    wait()
    native.exit_scope("step")

    assert session.rows("host_wall")[("step",)] > 0.7 * SPAN_S
    assert session.seconds(wait) < 0.3 * SPAN_S


def test_where_scopes_have_no_times_time_in_them_stands_at_its_lines() -> None:
    session = HostSession(times_scopes=False)
    native.enter_scope("step", native.KIND_SCOPE)
    seconds = took(wait)
    native.exit_scope("step")

    assert session.seconds(wait) == pytest.approx(seconds, rel=0.1, abs=LATE_S)
    session.close()


def test_other_threads_are_counted_apart(session: HostSession) -> None:
    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()

    assert session.seconds(compute) == 0
    assert session.seconds(compute, "other_threads") > 0.5 * SPAN_S


def test_threads_that_come_and_go_are_survived(session: HostSession) -> None:
    end = time.perf_counter() + SPAN_S
    count = 0
    while time.perf_counter() < end:
        threads = [threading.Thread(target=sum, args=(range(100),)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        count += 1

    assert count > 0
    assert session.counted() > 0.7 * SPAN_S


def test_code_that_is_made_and_dropped_is_survived(session: HostSession) -> None:
    end = time.perf_counter() + SPAN_S
    while time.perf_counter() < end:
        exec(compile("sum(range(200))\n" * 20, f"made-{time.perf_counter()}.py", "exec"), {})

    assert session.counted() > 0.7 * SPAN_S


def test_while_no_session_is_active_nothing_is_counted(session: HostSession) -> None:
    session.sampler.flush()
    session.core.deactivate()
    wait()
    session.sampler.flush()
    session.core.activate()

    assert session.seconds(wait) < 0.3 * SPAN_S


def test_modules_stand_below_who_imports_them(tmp_path: Any, session: HostSession) -> None:
    file = tmp_path / "slow_to_import_here.py"
    file.write_text(f"import threading\nthreading.Event().wait({SPAN_S})\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import slow_to_import_here  # noqa: F401
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("slow_to_import_here", None)
    (longest, seconds) = max(session.rows("host_wall").items(), key=lambda row: row[1])

    assert longest[longest.index(f"{file}:2@<module>") - 1].startswith(HERE)
    assert seconds > 0.7 * SPAN_S


def run(program: str) -> subprocess.CompletedProcess[str]:
    start = """
    import os, sys, threading, time
    from proton_bench import _native as native
    session = native.Session("shadow", True)
    session.sample_host()
    session.activate()
    sampler = native.HostSampler(1000.0)
    sampler.start()
    """
    text = textwrap.dedent(start) + textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)


ENDS = {
    "without an end of the sampler": "threading.Event().wait(0.05)",
    "in a thread that goes on": """
        def spin():
            while True: sum(range(100))
        for _ in range(4): threading.Thread(target=spin, daemon=True).start()
        threading.Event().wait(0.05)
        """,
    "at once": "os._exit(0)",
    "by exec": "os.execv(sys.executable, [sys.executable, '-c', ''])",
    "after handlers that wait": "import atexit; atexit.register(threading.Event().wait, 0.05)",
    "by an exit": "sys.exit(0)",
}


@pytest.mark.parametrize("end", list(ENDS))
def test_a_process_ends_as_without_samples(end: str) -> None:
    done = run(ENDS[end])

    assert (done.returncode, done.stderr) == (0, "")


def test_forked_children_go_on_without_samples_and_can_take_their_own() -> None:
    done = run(
        """
        def child():
            mine = native.Session("shadow", True)
            mine.sample_host()
            mine.activate()
            other = native.HostSampler(1000.0)
            other.start()
            end = time.perf_counter() + 0.05
            while time.perf_counter() < end: sum(range(100))
            other.flush()
            assert mine.counts()["samples"] > 0
            other.stop()
        for i in range(20):
            pid = os.fork()
            if pid == 0:
                if i % 2: child()
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            assert status == 0, status
        sampler.flush()
        assert session.counts()["samples"] > 0
        """
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_signals_reach_the_main_thread() -> None:
    done = run(
        """
        import signal
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(threading.current_thread()))
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end: sum(range(100))
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert len(seen) > 10
        assert set(seen) == {threading.main_thread()}
        """
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_a_second_sampler_of_the_process_does_nothing(session: HostSession) -> None:
    second = native.HostSampler(500.0)
    second.start()
    seconds = took(wait)

    assert session.seconds(wait) < seconds + LATE_S


def test_one_thread_takes_them_all(session: HostSession) -> None:
    names = [
        Path(f"/proc/self/task/{task}/comm").read_text().strip()
        for task in os.listdir("/proc/self/task")
    ]

    assert names.count("proton-host") == 1

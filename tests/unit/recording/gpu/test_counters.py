from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from proton_bench.recording.counters.gpm import GpmWindow
from proton_bench.recording.gpu import counters
from proton_bench.recording.gpu.counters import (
    start_counters,
    stop_counters,
    take_gpm_facts,
)


class Timelines:
    """The calls of the native module."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.samples: list[tuple[str, int, list[tuple[str, float]]]] = []
        self.times_ns: list[int] = []
        self.losses: list[str] = []
        self.came = threading.Semaphore(0)
        self._failure = failure

    def add_counters(self, at_ns: int, kind: str, index: int, readings: Any) -> None:
        if self._failure is not None:
            raise self._failure
        self.times_ns.append(at_ns)
        self.samples.append((kind, index, readings))
        self.came.release()

    def add_dropped(self, reason: str, count: int) -> None:
        assert count == 1
        self.losses.append(reason)

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self.came.acquire(timeout=300)


class Gpus:
    """Readings of one GPU."""

    is_open = False
    opened = 0

    def __init__(self) -> None:
        Gpus.opened += 1
        Gpus.is_open = True

    def read(self) -> Any:
        yield 1, 5, [("power (W)", 700.0)]

    def close(self) -> None:
        Gpus.is_open = False


class Gpm:
    """Windows of one GPU, one at each reading."""

    def __init__(self) -> None:
        self.refusals = {}

    def read(self) -> Any:
        now_ns = time.monotonic_ns()
        yield GpmWindow(1, now_ns, now_ns + 100, {"dram_pct": 12.0})

    def close(self) -> None:
        pass


def install(monkeypatch: pytest.MonkeyPatch, failure: Exception | None = None) -> Timelines:
    timelines = Timelines(failure)
    monkeypatch.setattr(counters, "native", timelines)
    monkeypatch.setattr(counters, "GpuReadings", Gpus)
    monkeypatch.setattr(counters, "GpmReadings", Gpm)
    monkeypatch.setattr(counters, "_gpus", None)
    monkeypatch.setattr(counters, "_gpm", None)
    monkeypatch.setattr(Gpus, "opened", 0)
    return timelines


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "counters" in thread.name]


def test_samples_of_host_and_gpus_come_until_the_session_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timelines = install(monkeypatch)

    start_counters(1, 1000.0)
    timelines.wait_for(6)
    stop_counters(1)

    assert threads() == []
    assert timelines.samples[1::2] == [("CUDA", 1, [("power (W)", 700.0)])] * (
        len(timelines.samples) // 2
    )
    for kind, index, ((name, value),) in timelines.samples[::2]:
        assert (kind, index, name) == ("", 0, "resident memory (bytes)")
        assert 1 << 20 < value < 1 << 40
    host_ns = timelines.times_ns[::2]
    assert host_ns == sorted(set(host_ns))
    assert timelines.losses == []


def test_the_shortest_session_has_a_sample_of_its_begin_and_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timelines = install(monkeypatch)

    start_counters(1, 0.001)
    stop_counters(1)

    assert len(timelines.samples) == 4


def test_the_first_sample_is_there_before_the_program_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timelines = install(monkeypatch)

    start_counters(1, 0.001)

    assert [kind for kind, _, _ in timelines.samples] == ["", "CUDA"]
    stop_counters(1)


def test_the_library_is_opened_once_and_closed_when_the_program_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)

    for session in (1, 2):
        start_counters(session, 1000.0)
        stop_counters(session)

    assert Gpus.opened == 1
    assert Gpus.is_open
    counters._end()
    assert not Gpus.is_open


def test_a_driver_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    timelines = install(monkeypatch)
    answers = threading.Event()

    def read(_gpus: Gpus) -> Any:
        answers.wait(60)
        return iter(())

    monkeypatch.setattr(Gpus, "read", read)
    monkeypatch.setattr(counters, "_MAX_FIRST_S", 0.01)

    start_counters(1, 1000.0)

    assert len(timelines.samples) == 1
    answers.set()
    stop_counters(1)


def test_sessions_share_a_thread_that_the_last_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)

    start_counters(1, 1.0)
    start_counters(2, 500.0)
    stop_counters(1)
    stop_counters(3)
    assert threads() == ["proton_bench counters"]

    stop_counters(2)
    assert threads() == []


def test_no_thread_runs_where_counters_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    timelines = install(monkeypatch)

    start_counters(1, 0.0)

    assert threads() == []
    stop_counters(1)
    assert timelines.samples == []


def test_a_failure_is_counted_and_not_raised(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    timelines = install(monkeypatch, OSError("no more files"))

    start_counters(1, 10.0)
    stop_counters(1)

    assert timelines.losses == ["samples of counters after a failed one"]
    assert capfd.readouterr() == ("", "")


def test_means_of_a_session_without_a_timeline_are_taken_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timelines = install(monkeypatch)

    start_counters(1, 0.0, gpm=True)
    timelines.wait_for(2)
    stop_counters(1)

    assert threads() == []
    assert set(map(str, timelines.samples)) == {str(("CUDA", 1, [("DRAM (%)", 12.0)]))}
    (facts,) = take_gpm_facts(1)
    assert (facts["device"], facts["means"]) == (1, {"dram_pct": 12.0})
    assert facts["windows"] == len(timelines.samples)
    assert take_gpm_facts(1) == []


def test_only_sessions_that_ask_have_means(monkeypatch: pytest.MonkeyPatch) -> None:
    timelines = install(monkeypatch)

    start_counters(1, 1000.0)
    timelines.wait_for(4)
    stop_counters(1)

    assert take_gpm_facts(1) == []
    assert "DRAM (%)" not in str(timelines.samples)


FORKS = """
import os, threading
from proton_bench.recording.gpu import counters

counters.start_counters(1, 1000.0)
for _ in range(20):
    child = os.fork()
    if not child:
        assert not any("counters" in thread.name for thread in threading.enumerate())
        counters.stop_counters(1)
        counters.start_counters(1, 1000.0)
        counters.stop_counters(1)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
counters.stop_counters(1)
"""


def test_a_forked_child_samples_for_itself() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKS]

    done = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


ENDS = """
from proton_bench.recording.gpu import counters

counters.start_counters(1, 1000.0)
"""


def test_a_program_ends_with_its_sampler_running() -> None:
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=300)

    assert (done.returncode, done.stderr) == (0, "")

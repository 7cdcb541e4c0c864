from __future__ import annotations

import threading

from proton_bench.recording.launcher.runner import Progress


def test_long_work_is_announced_again_and_again() -> None:
    lines: list[str] = []
    enough = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        if len(lines) == 2:
            enough.set()

    with Progress("writing x", interval_s=0.001, write=write):
        assert enough.wait(60)

    assert lines[0].startswith("proton: writing x... ")


def test_short_work_says_nothing() -> None:
    lines: list[str] = []

    with Progress("writing x", interval_s=3600, write=lines.append):
        pass

    assert lines == []


def test_an_armed_progress_waits_for_the_work_to_begin() -> None:
    lines: list[str] = []
    progress = Progress("writing x", interval_s=3600, write=lines.append)

    progress.arm()
    threads = [thread.name for thread in threading.enumerate()]
    with progress:
        pass

    assert "proton-progress" in threads
    assert lines == []

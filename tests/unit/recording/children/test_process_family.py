from __future__ import annotations

import os
import subprocess
import sys

from proton_bench.recording.gpu.nvidia import strangers

_NOBODY = 1 << 30


def test_this_process_its_ancestors_and_its_descendants_are_not_strangers() -> None:
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE) as child:
        assert strangers([os.getpid(), os.getppid(), child.pid, 1]) == []
        child.communicate()


def test_a_process_that_is_not_seen_here_is_left_out() -> None:
    assert strangers([_NOBODY]) == []


def test_a_process_that_descends_from_another_one_is_a_stranger() -> None:
    asks = (
        "import sys; from proton_bench.recording.gpu.nvidia import strangers;"
        "print(strangers(map(int, sys.argv[1:])))"
    )
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE) as sibling:
        done = subprocess.run(
            [sys.executable, "-c", asks, str(sibling.pid), str(_NOBODY)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == f"[{sibling.pid}]"
        sibling.communicate()

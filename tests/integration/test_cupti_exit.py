"""The interpreter ends while threads of the target go on launching."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

FAKES = Path(__file__).resolve().parents[1] / "fakes"
PROGRAM = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from doubles import Cupti
import proton_bench as proton

cupti = Cupti()
proton.start(sys.argv[2], backend="cupti", context="python")
is_busy = threading.Event()

def launch():
    for round in range(10**9):
        names = {}
        exec("def fresh(cupti):\\n  cupti.launch('k', 9)", names)  # a path never seen
        names["fresh"](cupti)
        if round == 1000:
            is_busy.set()

for _ in range(3):
    threading.Thread(target=launch, daemon=True).start()
is_busy.wait()
"""


def test_threads_that_launch_do_not_abort_the_process(
    cupti_doubles: Doubles, tmp_path: Path
) -> None:
    for number in range(3):  # whether a thread waits for the interpreter at its end is chance
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(FAKES), str(tmp_path / f"run{number}")],
            env=cupti_doubles.environment(PROTON_BENCH_NATIVE="1"),
            capture_output=True,
            text=True,
            check=False,
        )

        assert ran.returncode == 0, ran.stderr

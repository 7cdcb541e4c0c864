"""A long recording: its memory stays level, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys

from siege.attack import Attack, BreachError, Trial

PROGRAM = """
import array, sys, threading, time
from pathlib import Path

import proton_bench as proton
from proton_bench import _native, data

NAMES, WARM = 400, 20
seconds, shape, context = float(sys.argv[1]), sys.argv[2], sys.argv[3]


def resident_kb():
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def record(step, part):
    for name in range(NAMES):
        with proton.scope(f"request {step} {part} {name}", {"n": 1}):
            launch = _native.emit_launch()
        _native.emit_kernel(launch, f"kernel {name % 7}", 0, 10, "CUDA", 0, 0)


def total(node, metric):
    return node["metrics"].get(metric, 0) + sum(total(each, metric) for each in node["children"])


def step(number):
    threads = [threading.Thread(target=record, args=(number, part)) for part in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    data.advance_phase(session)
    tree = data.get(session, number)[0]
    found = total(tree, "n"), total(tree, "count")
    data.clear(session, number)
    assert found == (2 * NAMES, 2 * NAMES), (number, found)


session = proton.start("soak", backend="cpu", data=shape, context=context)
ends = time.monotonic() + seconds
used, number = array.array("q"), 0  # a list would grow by more than what is measured
while number < WARM + 8 or time.monotonic() < ends:
    step(number)
    number += 1
    if number > WARM:
        used.append(resident_kb())
proton.finalize(session)
quarter = max(len(used) // 4, 1)
# Freed memory takes a while to be in pieces that fit again, so the first quarter is left out.
growth = sorted(used[-quarter:])[quarter // 2] - sorted(used[quarter : 2 * quarter])[quarter // 2]
left = _native.live_context_count()
print(number * 4 * NAMES, growth, left)
"""
GROWTH_KB = 2048
LONGEST = 600.0


class Soak(Attack):
    """Two threads, new names in every phase, each phase read and cleared."""

    name = "soak"
    about = "a recording of new names without end: memory level, every scope and kernel there"
    share = 2.0

    def attempt(self, trial: Trial) -> None:
        """Record for the time that is left."""
        dice = trial.dice
        seconds = min(trial.seconds, LONGEST)
        words = [str(seconds), "tree", dice.choice(("shadow", "python"))]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            cwd=trial.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or done.stderr:
            raise BreachError(f"{words}: code {done.returncode}; {done.stderr[-1500:]}")
        records, growth, left = map(int, done.stdout.split())
        trial.count += records
        if growth > GROWTH_KB or left:
            raise BreachError(f"{words}: grew by {growth} KB, {left} contexts are left")

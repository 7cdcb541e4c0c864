"""What `import proton_bench` adds to a start of Python: python -m benchmarks.micro.import_cost.

Printed are wall time and CPU time of the started interpreter; a busy machine disturbs the latter
less.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Mapping

from benchmarks.interleaved import difference, median, print_machine, print_row, rounds, timed

ROUNDS = 25
BAR = "60 ms"
BARE = "pass"
OURS = "import proton_bench"
CAPTURE = "import proton_bench as p; p.start; p.scope"
UPSTREAM = "import triton.profiler"
STATEMENTS = (BARE, OURS, CAPTURE, UPSTREAM)


def start(statement: str) -> Callable[[], None]:
    """Return a function that runs one statement in a fresh interpreter."""

    def run() -> None:
        subprocess.run([sys.executable, "-c", statement], check=True)

    return run


def cpu_time(work: Callable[[], None]) -> Callable[[], float]:
    """Return an arm: seconds of CPU time that child processes of ``work`` take."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def arm() -> float:
        before = spent()
        work()
        return spent() - before

    return arm


def show(kind: str, arms: Mapping[str, Callable[[], float]]) -> None:
    """Measure and print ms beyond the bare interpreter."""
    costs = rounds(arms, ROUNDS)
    in_ms = {name: [value * 1e3 for value in values] for name, values in costs.items()}
    print_row(f"bare interpreter, {kind}", f"{median(in_ms[BARE]):.1f} ms")
    for statement in STATEMENTS[1:]:
        added = difference(in_ms[statement], in_ms[BARE])
        print_row(statement, f"+{added:.1f} ms", BAR if statement == OURS else "")


def main() -> None:
    """Print the costs on the clock, then in CPU time."""
    print_machine()
    show("on the clock", {each: timed(start(each)) for each in STATEMENTS})
    show("CPU time", {each: cpu_time(start(each)) for each in STATEMENTS})


if __name__ == "__main__":
    main()

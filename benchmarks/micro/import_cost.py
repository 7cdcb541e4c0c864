"""What `import proton_bench` adds to a start of Python: python -m benchmarks.micro.import_cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks.interleaved import (
    difference,
    median,
    print_machine,
    print_row,
    ratio,
    rounds,
    timed,
)

ROUNDS = 25
BAR = "60 ms"
BARE = "pass"
OURS = "import proton_bench"
CAPTURE = "import proton_bench as p; p.start; p.scope"
UPSTREAM = "import triton.profiler"


def start(statement: str) -> Callable[[], object]:
    """Return a function that runs one statement in a fresh interpreter."""
    return lambda: subprocess.run([sys.executable, "-c", statement], check=True)


def main() -> None:
    """Print ms beyond the bare interpreter."""
    print_machine()
    statements = (BARE, OURS, CAPTURE, UPSTREAM)
    costs = rounds({each: timed(start(each)) for each in statements}, ROUNDS)
    in_ms = {name: [value * 1e3 for value in values] for name, values in costs.items()}
    print_row("bare interpreter", f"{median(in_ms[BARE]):.1f} ms")
    for statement in (OURS, CAPTURE):
        print_row(statement, f"+{difference(in_ms[statement], in_ms[BARE]):.1f} ms", BAR)
    print_row(UPSTREAM, f"+{difference(in_ms[UPSTREAM], in_ms[BARE]):.1f} ms")
    print_row("the whole start, ours / upstream's", f"{ratio(costs[CAPTURE], costs[UPSTREAM]):.3f}")


if __name__ == "__main__":
    main()

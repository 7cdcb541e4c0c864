"""A million scope names over a thousand phases: python -m benchmarks.micro.memory_flat.

Prints how many contexts and names are alive and how much memory the process holds while the phases
go by. Both must stay level once the first phases have passed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import proton_bench as proton
from benchmarks.interleaved import print_machine
from proton_bench import _native, data

LINES = 10


def resident_kb() -> int:
    """Return the memory that the process holds now, in KB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def open_scopes(first: int, count: int) -> None:
    """Enter and leave scopes with names that no other call uses, with a launch in each."""
    for number in range(first, first + count):
        with proton.scope(f"request {number}"):
            launch = _native.emit_launch()
        _native.emit_kernel(launch, f"kernel {number % 7}", 0, 10, "CUDA", 0, 0)


def run(phases: int, names: int) -> None:
    """Print one line for each tenth of the phases."""
    print(f"{'phase':>8} {'contexts':>9} {'names':>9} {'resident KB':>12} {'seconds':>8}")
    begin = time.perf_counter()
    with TemporaryDirectory() as folder:
        session = proton.start(f"{folder}/flat", backend="cpu")
        for phase in range(phases):
            open_scopes(phase * names, names)
            contexts, alive = _native.live_context_count(), _native.live_name_count()
            data.advance_phase(session)
            data.clear(session, phase)
            if (phase + 1) % max(1, phases // LINES) == 0 or phase == 0:
                seconds = time.perf_counter() - begin
                counts = f"{phase + 1:>8} {contexts:>9} {alive:>9}"
                print(f"{counts} {resident_kb():>12} {seconds:>8.1f}")
        proton.finalize(session)
    left = f"{_native.live_context_count()} contexts, {_native.live_name_count()} names"
    print(f"left after finalize: {left}")


def main() -> None:
    """Parse the size of the run and print its figures with the machine they were taken on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--phases", type=int, default=1000)
    parser.add_argument("--names", type=int, default=1000, help="distinct names in each phase")
    arguments = parser.parse_args()
    print_machine()
    run(arguments.phases, arguments.names)


if __name__ == "__main__":
    main()

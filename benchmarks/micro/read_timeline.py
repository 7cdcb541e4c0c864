"""A timeline of 200 000 slices from `.pftrace`: python -m benchmarks.micro.read_timeline.

Nested scopes of a thread, recorded by a session, are read in turn

as they are     what the bytes of a packet say up to its time is read once (`perfetto_plan`)
each packet     the same reader, with every packet read on its own
protobuf        protobuf's compiled parser, where it is installed: packets alone, without their
                times, texts and nesting

The bar: a second reads 100 000 slices or more on one core, and reading is at most half of what it
is with each packet read on its own. Costs are printed in CPU time.
"""

from __future__ import annotations

import gzip
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import median, print_machine, print_row, ratio, rounds, timed
from proton_bench.formats.perfetto.trace import PlanBook
from proton_bench.formats.registry import read_profile

ROUNDS = 7
SLICES = 200_000
BAR_PER_SECOND = 100_000
BAR_RATIO = 0.5

PROGRAM = """
import sys
import proton_bench as proton
session = proton.start("read", backend="cpu", data="trace")
for _ in range(int(sys.argv[1]) // 4):
    with proton.scope("step"):
        with proton.scope("forward"), proton.scope("layer", {"flops": 2}):
            pass
        with proton.scope("backward"):
            pass
proton.finalize(session, "perfetto")
"""


@contextmanager
def without_plans() -> Iterator[None]:
    """Have every packet read on its own."""
    find = PlanBook.find
    PlanBook.find = lambda self, packet: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        PlanBook.find = find  # type: ignore[method-assign]


def record(folder: str) -> Path:
    """Record the slices, and return their file."""
    variables = {"PROTON_BENCH_TRACE_FORMATS": "perfetto"}
    command = [sys.executable, "-c", PROGRAM, str(SLICES)]
    subprocess.run(command, cwd=folder, env={**os.environ, **variables}, check=True)
    return Path(folder) / "read.pftrace"


def parsed(file: Path) -> Callable[[], object]:
    """Return a function that parses the file with protobuf."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    return lambda: len(Trace.FromString(gzip.decompress(file.read_bytes())).packet)


def main() -> None:
    """Print slices per second, and ours over the others."""
    print_machine()
    with TemporaryDirectory() as folder:
        file = record(folder)

        def each_packet() -> object:
            with without_plans():
                return read_profile(file)

        clock = time.process_time
        arms = {
            "as they are": timed(lambda: read_profile(file), clock=clock),
            "each packet": timed(each_packet, clock=clock),
        }
        if importlib.util.find_spec("perfetto") is not None:
            arms["protobuf"] = timed(parsed(file), clock=clock)
        costs = rounds(arms, ROUNDS)
        size = file.stat().st_size
    print(f"{SLICES} slices in {size / 1e6:.2f} MB, {ROUNDS} rounds")
    for name, seconds in costs.items():
        per_second = median([SLICES / each for each in seconds])
        bar = f"{BAR_PER_SECOND}" if name == "as they are" else ""
        print_row(f"{name}, slices per second", f"{per_second:.0f}", bar)
    shares = ratio(costs["as they are"], costs["each packet"])
    print_row("as they are : each packet", f"{shares:.3f}", f"{BAR_RATIO}")
    if "protobuf" in costs:
        print_row("as they are : protobuf", f"{ratio(costs['as they are'], costs['protobuf']):.3f}")


if __name__ == "__main__":
    main()

"""A million nodes from `.proton`: python -m benchmarks.micro.read_profile.

The bar: loading, inclusive sums and folding of variants together take at most three times what
reading the file's bytes takes, plus one second. Steps are printed in CPU time, the total in wall
time.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import median, print_machine, print_row, rounds, timed
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

ROUNDS = 7
ROWS = 1_000_000
CHILDREN = 8
NAMES = 977
METRIC = "time (ns)"
BAR_FACTOR = 3
BAR_SECONDS = 1.0


def million_rows() -> Profile:
    """Return a tree of kernels in which siblings partly share a name, as variants do."""
    builder = ProfileBuilder()
    for row in range(1, ROWS):
        name = f"kernel_{row % NAMES // 2}"
        metrics = {METRIC: row, "count": 1}
        builder.add((row - 1) // CHILDREN, name, FrameKind.KERNEL, metrics=metrics)
    return builder.build()


def main() -> None:
    """Print seconds per step and the whole against its bar."""
    print_machine()
    steps: dict[str, list[float]] = {"load": [], "inclusive sums": [], "fold variants": []}

    def whole() -> float:
        begin = time.perf_counter()
        marks = [time.process_time()]
        profile = read_profile(path)
        marks.append(time.process_time())
        profile.inclusive(METRIC)
        marks.append(time.process_time())
        profile.fold_variants()
        marks.append(time.process_time())
        for step, before, after in zip(steps, marks, marks[1:], strict=False):
            steps[step].append(after - before)
        return time.perf_counter() - begin

    with TemporaryDirectory() as folder:
        path = Path(folder) / "million.proton"
        write_profile(million_rows(), path)
        costs = rounds({"bytes": timed(path.read_bytes), "whole": whole}, ROUNDS)
        size = path.stat().st_size
    print_row(f"bytes of {ROWS:,} rows, {size / 1e6:.1f} MB", f"{median(costs['bytes']):.4f} s")
    for step, values in steps.items():
        print_row(f"{step}, CPU time", f"{median(values[1:]):.3f} s")
    bars = [BAR_FACTOR * each + BAR_SECONDS for each in costs["bytes"]]
    shares = median([each / bar for each, bar in zip(costs["whole"], bars, strict=True)])
    bar = f"{median(bars).middle:.3f} s, share of it {shares:.2f}"
    print_row("load, inclusive, fold", f"{median(costs['whole']):.3f} s", bar)


if __name__ == "__main__":
    main()

"""Two profiles against each other, step by step: python -m benchmarks.micro.compare_profiles.

One row in a hundred has another name and must be matched in other ways. Files are
read from disk; the last step writes the text to memory.
"""

from __future__ import annotations

import io
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import median, print_machine, print_row
from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.compare.ranking import rank
from proton_bench.analysis.run import Run
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.text.diff import DiffReport
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console

SIZES = {100_000: 7, 1_000_000: 3}
CHILDREN = 8
NAMES = 977
CODES = 50


def profile(rows: int, shift: int) -> Profile:
    """Return a tree of kernels; ``shift`` changes their times and the names of some."""
    builder = ProfileBuilder()
    variants = [Variant(code_hash=f"code {place}") for place in range(CODES)]
    for row in range(1, rows):
        name = f"kernel_{row % NAMES + (shift if row % 100 == 0 else 0)}"
        builder.add(
            (row - 1) // CHILDREN,
            name,
            FrameKind.KERNEL,
            metrics={"time (ns)": 1000 + row % 1000 + shift, "count": 1},
            variant=variants[row % CODES],
        )
    return builder.build()


def measured(base: Path, new: Path) -> dict[str, float]:
    """Return the seconds of each step of ``proton diff``."""
    marks = [time.perf_counter()]
    runs = [Run(read_profile(path), path.name) for path in (base, new)]
    marks.append(time.perf_counter())
    comparison = compare(runs[:1], runs[1:], CompareOptions())
    marks.append(time.perf_counter())
    ranking = rank(comparison, None, 100)
    print_report(open_console(io.StringIO()), DiffReport(comparison, ranking))
    marks.append(time.perf_counter())
    steps = ("read both", "compare", "rank and print")
    return dict(zip(steps, (b - a for a, b in pairwise(marks)), strict=True))


def main() -> None:
    """Print seconds per step for each size."""
    print_machine()
    with TemporaryDirectory() as folder:
        for rows, rounds in SIZES.items():
            paths = Path(folder) / "base.proton", Path(folder) / "new.proton"
            for path, shift in zip(paths, (0, 7), strict=True):
                write_profile(profile(rows, shift), path)
            found = [measured(*paths) for _ in range(rounds)]
            for step in found[0]:
                print_row(f"{rows:,} rows, {step}", f"{median([f[step] for f in found]):.3f} s")
            whole = median([sum(each.values()) for each in found])
            print_row(f"{rows:,} rows, all of it", f"{whole:.3f} s")


if __name__ == "__main__":
    main()

"""Reading, showing and comparing large profiles: python -m benchmarks.micro.reading.

Bars: `proton view` of 100 000 rows takes at most four times what ``json.loads`` of the same tree
takes, plus one second; loading and folding a million rows of `.proton`, three times what reading
the bytes takes, plus one second.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.interleaved import median, print_machine, print_row, ratio, rounds, timed
from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.compare.ranking import rank
from proton_bench.analysis.metrics.derive import default_metrics
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.text.diff import DiffReport
from proton_bench.report.text.tree import TreeReport, print_report
from proton_bench.report.words.header import HeaderReport
from proton_bench.support.console import open_console

ROUNDS = 7
ROWS, MILLION, HATCHET_ROWS = 100_000, 1_000_000, 10_000
BAR_SECONDS, VIEW_FACTOR, LOAD_FACTOR = 1.0, 4, 3


def kernels(rows: int, shift: int = 0, children: int = 8) -> Profile:
    """Return a tree of kernels; ``shift`` changes their times and the names of one in a hundred."""
    builder = ProfileBuilder()
    variants = [Variant(code_hash=f"code {place}") for place in range(50)]
    for row in range(1, rows):
        builder.add(
            (row - 1) // children,
            f"kernel_{row % 977 // 2 + (shift if row % 100 == 0 else 0)}",
            FrameKind.KERNEL,
            metrics={"time (ns)": 1000 + row % 1000 + shift, "count": 1},
            variant=variants[row % len(variants)],
        )
    return builder.build()


def chains(rows: int, depth: int = 100) -> Profile:
    """Return call paths of 100 frames."""
    builder = ProfileBuilder()
    for _ in range(rows // depth):
        row = 0
        for level in range(depth):
            metrics = {"time (ns)": 1, "count": 1}
            row = builder.add(row, f"level {level}", FrameKind.SCOPE, metrics=metrics)
    return builder.build()


def view(path: Path) -> None:
    """Do what ``proton view`` does; the text goes to memory."""
    profile = read_profile(path)
    tree = build_tree(profile, default_metrics(profile), Selection())
    print_report(open_console(io.StringIO()), HeaderReport(profile, path.name), TreeReport(tree))


def diff(base: Path, new: Path) -> None:
    """Do what ``proton diff`` does; the text goes to memory."""
    runs = [Run(read_profile(path), path.name) for path in (base, new)]
    comparison = compare(runs[:1], runs[1:], CompareOptions())
    print_report(open_console(io.StringIO()), DiffReport(comparison, rank(comparison, None, 100)))


def hatchet(path: Path) -> object:
    """Load and render a file with llnl-hatchet."""
    from hatchet import GraphFrame

    tree, *_ = json.loads(path.read_bytes())
    return GraphFrame.from_literal([tree]).tree(metric_column=["time (ns)"], depth=100)


def print_costs(name: str, costs: dict[str, Sequence[float]], factor: int) -> None:
    """Print what each arm takes, and against the first, of which the bar is a multiple."""
    base, *others = costs
    for each in others:
        bars = [factor * value + BAR_SECONDS for value in costs[base]]
        print_row(
            f"{name}: {each}",
            f"{median(costs[each]):.3f} s, over {base} {ratio(costs[each], costs[base]):.2f}",
            f"share of the bar {ratio(costs[each], bars):.2f}",
        )


def main() -> None:
    """Print all of it."""
    print_machine()
    with TemporaryDirectory() as name:

        def written(profile: Profile, file: str) -> Path:
            path = Path(name, file)
            write_profile(profile, path)
            return path

        def measured(arms: dict[str, Callable[[], Any]]) -> dict[str, Any]:
            return rounds({each: timed(work) for each, work in arms.items()}, ROUNDS)

        small = written(kernels(HATCHET_ROWS), "small.hatchet")
        costs = measured({"hatchet": lambda: hatchet(small), "view": lambda: view(small)})
        print_costs(f"{HATCHET_ROWS:,} rows", costs, VIEW_FACTOR)

        files = [written(kernels(ROWS), f"view.{form}") for form in ("hatchet", "proton")]
        arms: dict[str, Callable[[], Any]] = {
            "json.loads": lambda: json.loads(files[0].read_bytes()),
            **{f"view of {path.suffix}": lambda path=path: view(path) for path in files},
        }
        print_costs(f"{ROWS:,} rows", measured(arms), VIEW_FACTOR)

        shapes = {"wide": kernels(MILLION), "chains": chains(MILLION)}
        shapes["equal siblings"] = kernels(MILLION, children=MILLION // 1000)
        for shape, profile in shapes.items():
            path = written(profile, f"{shape}.proton")
            arms = {
                "the bytes": path.read_bytes,
                "load": lambda path=path: read_profile(path),
                "load, fold, depths": lambda path=path: read_profile(path).fold_variants().depths(),
            }
            print_costs(f"{MILLION:,} rows, {shape}", measured(arms), LOAD_FACTOR)

        for rows in (ROWS, MILLION):
            sides = [written(kernels(rows, shift), f"{shift}.proton") for shift in (0, 7)]
            costs = measured({"diff": lambda sides=sides: diff(*sides)})
            print_row(f"{rows:,} rows: diff", f"{median(costs['diff']):.3f} s")


if __name__ == "__main__":
    main()

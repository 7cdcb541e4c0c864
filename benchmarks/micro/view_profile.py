"""What ``proton view`` costs: python -m benchmarks.micro.view_profile [--hatchet-100000].

The bar for 100 000 rows: loading, inclusive sums and rendering together take at most four times
what ``json.loads`` of the same tree takes, plus one second. If llnl-hatchet is installed, its
loading and rendering of the same trees are printed too. It takes minutes for 100 000 rows, so that
is measured once, and only with the option.

The bar for a million rows of `.proton`: loading takes at most three times what reading the bytes
takes, plus one second; here for trees of three shapes, alone, and with folding and depths.
"""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interleaved import median, print_machine, print_row, ratio, rounds, timed
from proton_bench.analysis.metrics.derive import default_metrics
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.text.tree import TreeReport, print_report
from proton_bench.report.words.header import HeaderReport
from proton_bench.support.console import open_console

ROUNDS = 7
ROWS = 100_000
MILLION = 1_000_000
HATCHET_ROWS = (1_000, 10_000)
CHILDREN = 8
NAMES = 977
STEPS = ("load", "select and sum", "render")
VIEW_FACTOR, LOAD_FACTOR, BAR_SECONDS = 4, 3, 1.0


def wide(rows: int) -> Profile:
    """Return a tree of kernels of eight children each, in which siblings partly share a name."""
    builder = ProfileBuilder()
    for row in range(1, rows):
        metrics = {"time (ns)": row, "count": 1}
        name = f"kernel_{row % NAMES // 2}"
        builder.add((row - 1) // CHILDREN, name, FrameKind.KERNEL, metrics=metrics)
    return builder.build()


def equal_siblings(rows: int, scopes: int = 1_000) -> Profile:
    """Return scopes with ten kernels each, in as many variants as rows are left."""
    builder = ProfileBuilder()
    variants = [Variant(code_hash=f"code {place}") for place in range(50)]
    parents = [builder.add(0, f"scope {place}", FrameKind.SCOPE) for place in range(scopes)]
    for row in range(rows - scopes):
        builder.add(
            parents[row % scopes],
            f"kernel_{row // scopes % 10}",
            FrameKind.KERNEL,
            metrics={"time (ns)": row, "count": 1},
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


def view(path: Path) -> list[float]:
    """Return the seconds of each step of ``proton view``; the text goes to memory."""
    marks = [time.perf_counter()]
    profile = read_profile(path)
    marks.append(time.perf_counter())
    tree = build_tree(profile, default_metrics(profile), Selection())
    marks.append(time.perf_counter())
    print_report(open_console(io.StringIO()), HeaderReport(profile, path.name), TreeReport(tree))
    marks.append(time.perf_counter())
    return [after - before for before, after in pairwise(marks)]


def parse(path: Path) -> Callable[[], object]:
    """Return a function that parses a file's JSON."""
    return lambda: json.loads(path.read_bytes())


def hatchet(path: Path) -> Callable[[], object] | None:
    """Return a function that loads and renders a file with hatchet; None if not installed."""
    try:
        from hatchet import GraphFrame
    except ImportError:
        return None

    def work() -> object:
        tree, *_ = json.loads(path.read_bytes())
        return GraphFrame.from_literal([tree]).tree(metric_column=["time (ns)"], depth=100)

    return work


def print_views(folder: Path) -> None:
    """Print the view of 100 000 rows against its bar, from both formats."""
    profile = wide(ROWS)
    as_json, as_native = folder / "view.hatchet", folder / "view.proton"
    for path in (as_json, as_native):
        write_profile(profile, path)
    steps: dict[Path, list[list[float]]] = {as_json: [], as_native: []}

    def arm(path: Path) -> Callable[[], float]:
        def measured() -> float:
            steps[path].append(view(path))
            return sum(steps[path][-1])

        return measured

    arms = {"json": timed(parse(as_json)), **{path.name: arm(path) for path in steps}}
    costs = rounds(arms, ROUNDS)
    print_row(f"{ROWS:,} rows, json.loads", f"{median(costs['json']):.3f} s")
    for path, measured in steps.items():
        parts = zip(STEPS, zip(*measured[1:], strict=True), strict=True)
        print_row(
            path.name, "; ".join(f"{name} {median(part).middle:.3f} s" for name, part in parts)
        )
        bars = [VIEW_FACTOR * each + BAR_SECONDS for each in costs["json"]]
        share = f"share of the bar {ratio(costs[path.name], bars):.2f}"
        figures = f"{median(costs[path.name]):.3f} s, {ratio(costs[path.name], costs['json']):.2f}"
        print_row("  all of it, and against json.loads", figures, share)


def print_hatchet(folder: Path, rows: int, count: int) -> None:
    """Print the view's cost and hatchet's."""
    path = folder / f"{rows}.hatchet"
    write_profile(wide(rows), path)
    theirs = hatchet(path)
    if theirs is None:
        print("llnl-hatchet is not installed")
        return
    if count == 1:
        print_row(f"{rows:,} rows, hatchet, once", f"{timed(theirs)():.1f} s")
        return
    costs = rounds({"ours": timed(lambda: view(path)), "hatchet": timed(theirs)}, count)
    figures = f"{median(costs['ours']):.4f} s, hatchet {median(costs['hatchet']):.4f} s"
    print_row(f"{rows:,} rows of .hatchet", f"{figures}: {ratio(*costs.values()):.4f}")


def print_loads(folder: Path) -> None:
    """Print the loading of a million rows of `.proton` of three shapes against its bar."""
    for shape in (wide, equal_siblings, chains):
        path = folder / f"{shape.__name__}.proton"
        write_profile(shape(MILLION), path)

        def load(path: Path = path) -> object:
            return read_profile(path)

        def fold(path: Path = path) -> object:
            return read_profile(path).fold_variants().depths()

        arms = {"bytes": timed(path.read_bytes), "load": timed(load), "fold": timed(fold)}
        costs = rounds(arms, ROUNDS)
        bars = [LOAD_FACTOR * each + BAR_SECONDS for each in costs["bytes"]]
        for arm, what in (("load", "load"), ("fold", "load, fold, depths")):
            share = f"share of the bar {ratio(costs[arm], bars):.2f}"
            name = f"{MILLION:,} rows, {shape.__name__}: {what}"
            print_row(name, f"{median(costs[arm]):.3f} s", share)


def main() -> None:
    """Print all of it."""
    print_machine()
    with TemporaryDirectory() as name:
        folder = Path(name)
        print_views(folder)
        for rows in HATCHET_ROWS:
            print_hatchet(folder, rows, ROUNDS)
        if "--hatchet-100000" in sys.argv[1:]:
            print_hatchet(folder, ROWS, 1)
        print_loads(folder)


if __name__ == "__main__":
    main()

"""What profiling adds to whole programs: python -m benchmarks.overhead [COMMAND].

`rows` measures what the rows need and prints them with PASS, FAIL or UNDECIDED, `sampling` does so
for samples of program counters. Without a command all other chosen workloads are measured. `report`
only reads files, and `agree` compares the records with torch.profiler. Results are written after
every round; --resume continues a stopped run. --dry runs tiny sizes on the doubles of the vendor's
libraries, or on the CPU without a compiler, to check that everything works; its figures mean
nothing.

Each round starts a fresh process per arm. All of them get ready at the same time, then one measures
at a time, in an order that is shuffled from the seed; --apart has one process at a time
instead. See benchmarks/overhead/report.py for the estimator.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.overhead.agreement import WORKLOADS as COMPARED
from benchmarks.overhead.agreement import compare
from benchmarks.overhead.plan import ARMS, SAMPLED, WORKLOADS, chosen
from benchmarks.overhead.preparation import setting_of
from benchmarks.overhead.report import ROWS, print_report
from benchmarks.overhead.results import Results
from benchmarks.overhead.runner import measure_round
from benchmarks.round_results import machine, measure, merged


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overhead", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "command",
        nargs="?",
        default="measure",
        choices=("measure", "rows", "sampling", "report", "agree"),
    )
    parser.add_argument("files", nargs="*", type=Path, help="results, for report")
    workloads = sorted({*WORKLOADS, *COMPARED})
    parser.add_argument("--workload", action="append", choices=workloads, help="all")
    parser.add_argument("--tool", action="append", choices=list(ARMS), help="arms; all")
    parser.add_argument("--rounds", type=int, default=10, help="processes per arm; 10")
    parser.add_argument("--blocks", type=int, default=5, help="blocks of each kind; 5")
    parser.add_argument("--budget-seconds", type=float, default=500)
    parser.add_argument("--limit", type=float, default=240, help="seconds for one answer")
    parser.add_argument("--seed", type=int, default=0, help="of the order of arms")
    parser.add_argument("--windows", type=int, default=6, help="windows of agree; 6")
    parser.add_argument("--json", type=Path, help="where; below build/overhead otherwise")
    parser.add_argument("--resume", action="store_true", help="go on with the file of --json")
    parser.add_argument("--apart", action="store_true", help="one process at a time")
    parser.add_argument("--cupti", default="triton", help="triton, nvidia or a path")
    parser.add_argument("--dry", action="store_true", help="tiny, without a GPU")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; 1 if a row fails."""
    options = parse(arguments)
    if options.command == "agree":
        options.json = options.json or Path("build/overhead/agreement.json")
        with TemporaryDirectory(prefix="agreement_build_") as folder:
            return compare(options, setting_of(options, Path(folder)))
    options.json = options.json or Path("build/overhead/results.json")
    if options.command == "report":
        files = options.files or [options.json]
        return 0 if print_report(merged([Results.load(path) for path in files])) else 1
    results = _results(options)
    workloads = options.workload or (SAMPLED if options.command == "sampling" else None)
    arms = chosen(_tools(options), workloads)
    with TemporaryDirectory(prefix="overhead_build_") as folder:
        setting = setting_of(options, Path(folder))
        measure(options, results, lambda order: measure_round(arms, setting, order))
    return 0 if print_report(results) else 1


def _tools(options: argparse.Namespace) -> list[str] | None:
    if options.tool or options.command not in ("rows", "sampling"):
        return list(options.tool) if options.tool else None
    if options.command == "sampling":
        return ["none", "ours", *(name for name, arm in ARMS.items() if arm.samples)]
    judged = {arm for row in ROWS for arm in (row.arm, row.reference, row.base)}
    wanted = judged | {"none", "torch", "upstream_trace"}
    return [name for name, arm in ARMS.items() if name in wanted and not arm.samples]


def _results(options: argparse.Namespace) -> Results:
    if options.resume and options.json.exists():
        return Results.load(options.json)
    settings = {
        "seed": options.seed,
        "blocks": options.blocks,
        "cupti": "double" if options.dry else options.cupti,
        "order": "apart" if options.apart else "lockstep",
    }
    return Results(machine(), settings)


if __name__ == "__main__":
    sys.exit(main())

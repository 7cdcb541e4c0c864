"""What scopes inside kernels cost: python -m benchmarks.instrumentation [rows|report].

Three parts: `launches` (one launch of a product with three scopes, and of a short kernel, with our
profiler and upstream's), `kernels` (how much slower ten kernels run with scopes) and `cycles`
(chains of a known number of cycles). Results are written after every round; --resume continues a
stopped run. --dry runs tiny sizes in the interpreter to check that everything works; its figures
mean nothing, and upstream is left out.

Each round starts a fresh process per arm. All of them get ready at the same time, then one measures
a pair of blocks at a time, bare and profiled, in an order that is shuffled from the seed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.instrumentation.plan import ARMS, PARTS, chosen
from benchmarks.instrumentation.report import print_report
from benchmarks.instrumentation.results import Results
from benchmarks.instrumentation.rounds import measure_round
from benchmarks.overhead.runner import ROOT, Setting
from benchmarks.round_results import machine, measure, merged

FILE = Path("build/instrumentation/results.json")
CACHE = ROOT / "build" / "instrumentation" / "triton"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.instrumentation", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("command", nargs="?", default="rows", choices=("rows", "report"))
    parser.add_argument("files", nargs="*", type=Path, help="results, for report")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="all")
    parser.add_argument("--arm", action="append", choices=list(ARMS), help="all")
    works = sorted({work for arm in ARMS.values() for work in arm.workloads})
    parser.add_argument("--work", action="append", choices=works, help="all")
    parser.add_argument("--rounds", type=int, default=10, help="processes per arm; 10")
    parser.add_argument("--blocks", type=int, default=3, help="pairs of blocks per process; 3")
    parser.add_argument("--budget-seconds", type=float, default=500)
    parser.add_argument("--limit", type=float, default=240, help="seconds for one answer")
    parser.add_argument("--seed", type=int, default=0, help="of the order of arms")
    parser.add_argument("--json", type=Path, default=FILE, help=f"where; {FILE}")
    parser.add_argument("--resume", action="store_true", help="go on with the file of --json")
    parser.add_argument("--dry", action="store_true", help="tiny, without a GPU")
    return parser.parse_args(arguments)


def _setting(options: argparse.Namespace) -> Setting:
    CACHE.mkdir(parents=True, exist_ok=True)
    path = [str(ROOT), str(ROOT / "plugins"), os.environ.get("PYTHONPATH", "")]
    environment = {
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "TRITON_CACHE_DIR": str(CACHE),
    }
    if options.dry:
        environment |= {"TRITON_INTERPRET": "1", "EXAMPLES_SIZE": "small"}
    return Setting(
        "cpu" if options.dry else "cuda",
        environment=environment,
        blocks=options.blocks,
        limit_s=options.limit,
        worker="benchmarks.instrumentation.worker",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; 1 if a row fails or a result is wrong."""
    options = parse(arguments)
    if options.command == "report":
        files = options.files or [options.json]
        return 0 if print_report(merged([Results.load(path) for path in files])) else 1
    settings = {"seed": options.seed, "blocks": options.blocks, "dry": options.dry}
    resumes = options.resume and options.json.exists()
    results = Results.load(options.json) if resumes else Results(machine(), settings)
    arms = chosen(options.part, options.arm, options.work)
    if options.dry:
        arms = {name: arm for name, arm in arms.items() if not name.startswith("upstream")}
    setting = _setting(options)
    measure(options, results, lambda order: measure_round(arms, setting, order))
    return 0 if print_report(results) else 1


if __name__ == "__main__":
    sys.exit(main())

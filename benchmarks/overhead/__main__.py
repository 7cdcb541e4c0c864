"""What profiling adds to whole programs: python -m benchmarks.overhead [rows|report|agree].

`rows` measures what the rows need and prints them with PASS, FAIL or UNDECIDED; without a word all
that is asked for is measured, `report` reads files only, and `agree` compares what is recorded with
torch.profiler. Results are written after every round, so whoever is stopped goes on with --resume.
--dry runs tiny sizes on the doubles of the vendor's libraries, or on the CPU where there is no
compiler, to see that everything works: its figures mean nothing.

Each round starts a fresh process per arm. All of them get ready at the same time, then one measures
at a time, block by block in an order that is shuffled from the seed; --apart has one process at a
time instead. See benchmarks/overhead/report.py for the estimator.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.overhead.agreement import compare
from benchmarks.overhead.floor import build
from benchmarks.overhead.plan import ARMS, WORKLOADS, chosen
from benchmarks.overhead.report import ROWS, print_report
from benchmarks.overhead.results import Results, machine, merged
from benchmarks.overhead.runner import ROOT, Setting, measure_round

__all__ = ["main", "measure"]


def find_cupti(which: str) -> Path:
    """Return the libcupti that all tools but torch's use.

    Args:
        which: "triton" for the one of Triton's wheel, "nvidia" for that of NVIDIA's, or a path.

    Raises:
        SystemExit: There is none.
    """
    patterns = {
        "triton": ("triton", "backends/nvidia/lib/cupti/libcupti.so*"),
        "nvidia": ("nvidia", "cu*/lib/libcupti.so*"),
    }
    if which not in patterns:
        return Path(which).resolve()
    package, pattern = patterns[which]
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob(pattern)):
            return path.resolve()
    raise SystemExit(f"package {package} has no {pattern}; name libcupti by --cupti PATH")


def setting_of(options: argparse.Namespace, folder: Path) -> Setting:
    """Return how to measure, with everything built that it takes."""
    caches = ROOT / "build" / "overhead" / "caches"
    environment = {
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT), str(ROOT / "plugins"), os.environ.get("PYTHONPATH", "")]
        ).strip(":"),
    }
    for name in ("inductor", "triton"):
        (caches / name).mkdir(parents=True, exist_ok=True)
    common = {"blocks": options.blocks, "limit_s": options.limit, "apart": options.apart}
    if options.dry:
        return _dry_setting(environment, common, folder)
    cupti = find_cupti(options.cupti)
    link = folder / "cupti"
    link.mkdir()
    (link / "libcupti.so").symlink_to(cupti)
    environment["PROTON_BENCH_CUPTI_LIB"] = str(cupti)
    environment["TRITON_CUPTI_LIB_PATH"] = str(link)  # upstream's is a folder
    floor = str(build(folder))
    return Setting("cuda", floor, str(cupti), environment=environment, **common)


def _dry_setting(
    environment: dict[str, str], common: Mapping[str, int | float | bool], folder: Path
) -> Setting:
    sys.path.append(str(ROOT / "tests"))
    from fakes.doubles import NoCompilerError, doubles

    try:
        fakes = doubles(ROOT / "build" / "doubles")
    except NoCompilerError:
        return Setting("cpu", environment=environment, **common)  # type: ignore[arg-type]
    environment = {**fakes.environment(), **environment}
    floor, cupti = str(build(folder)), str(fakes.cupti)
    return Setting("double", floor, cupti, environment=environment, **common)  # type: ignore[arg-type]


def measure(
    options: argparse.Namespace, plan: Mapping[str, Sequence[str]], results: Results
) -> None:
    """Measure rounds until there are enough or time is up, and write each one down."""
    begin = time.monotonic()
    with TemporaryDirectory(prefix="overhead_build_") as folder:
        setting = setting_of(options, Path(folder))
        longest = 0.0
        while len(results.rounds) < options.rounds:
            spent = time.monotonic() - begin
            if spent + longest > options.budget_seconds:
                print(f"{spent:.0f} s are spent: stopped before the next round", flush=True)
                return
            number = len(results.rounds)
            order = random.Random(f"{options.seed}/{number}")
            began = time.monotonic()
            arms = measure_round(plan, setting, order)
            seconds = time.monotonic() - began
            # The first one fills the caches of compilers.
            longest = max(longest, seconds) if number else seconds / 2
            results.rounds.append({"number": number, "seconds": seconds, "arms": arms})
            results.save(options.json)
            errors = "; ".join(
                f"{arm}: {each['error']}" for arm, each in arms.items() if each["error"]
            )
            print(f"round {number + 1}: {seconds:.0f} s {errors}", flush=True)
            if number % 3 == 2:
                print_report(results)
                sys.stdout.flush()


def _errors(arms: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [f"{arm}: {each['error']};" for arm, each in arms.items() if each["error"]]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overhead", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "command", nargs="?", default="measure", choices=("measure", "rows", "report", "agree")
    )
    parser.add_argument("files", nargs="*", type=Path, help="results, for report")
    parser.add_argument("--workload", action="append", choices=WORKLOADS)
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
    tools = options.tool
    if options.command == "rows" and not tools:
        judged = {arm for row in ROWS for arm in (row.arm, row.reference, row.base)}
        tools = [arm for arm in ARMS if arm in judged | {"none", "torch"}]
    results = Results(machine(), {"seed": options.seed, "blocks": options.blocks})
    results.settings |= {"cupti": "double" if options.dry else options.cupti}
    results.settings |= {"order": "apart" if options.apart else "lockstep"}
    if options.resume and options.json.exists():
        results = Results.load(options.json)
    measure(options, chosen(tools, options.workload), results)
    return 0 if print_report(results) else 1


if __name__ == "__main__":
    sys.exit(main())

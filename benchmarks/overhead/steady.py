"""What counters add once they run: python -m benchmarks.overhead.steady.

Opening the counters of a GPU takes a quarter of a second, more than a whole block of
`benchmarks.overhead`. Here a session first runs until they are open, and then for seconds; sessions
without counters and with them follow each other in one process. Printed are the ratio of the times
per unit of each pair, their median, and the backend's statement about the last session.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.interleaved import median, print_machine, print_row, ratio
from benchmarks.overhead.plan import UNITS
from benchmarks.overhead.workloads import Workload, make
from proton_bench.formats.registry import read_profile
from proton_bench.recording.session.session import SessionOptions, open_session

__all__ = ["main"]

_BARS = {"tiny": 1.05, "eager": 1.03, "matmul": 1.01}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overhead.steady",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("--workload", action="append", choices=tuple(_BARS), help="all of them")
    parser.add_argument("--seconds", type=float, default=8.0, help="that are measured; 8")
    parser.add_argument("--opening", type=float, default=1.5, help="seconds before them; 1.5")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--mode", default="counters")
    options = parser.parse_args(arguments)
    print_machine()
    for name in options.workload or _BARS:
        workload = make(name, "cuda")
        workload.prepare(None)
        with TemporaryDirectory(prefix="steady_") as folder:
            pairs = list(_pairs(workload, options, Path(folder)))
        without, with_counters = ([pair[side] for pair in pairs] for side in (0, 1))
        found = ratio(with_counters, without)
        print_row(f"{name}: us per {UNITS[name]}, without", str(median(without)))
        print_row(f"{name}: with {options.mode} / without", str(found), f"{_BARS[name]}")
        for fact, value in pairs[-1][2].items():
            print(f"  {fact:<18} {value}")
    return 0


def _pairs(
    workload: Workload, options: argparse.Namespace, folder: Path
) -> Iterator[tuple[float, float, Mapping[str, Any]]]:
    """Yield microseconds per unit without counters and with them, and the facts of counters."""
    for number in range(options.pairs):
        times: dict[str, float] = {}
        order = ("", options.mode) if number % 2 == 0 else (options.mode, "")
        for mode in order:
            target = folder / f"{number}{'with' if mode else 'without'}"
            session = open_session(SessionOptions(name=str(target), backend="cupti", mode=mode))
            _run(workload, options.opening)
            units, seconds = _run(workload, options.seconds)
            session.finalize(formats=("proton",))
            times[mode] = 1e6 * seconds / units
        profile = read_profile(folder / f"{number}with.proton")
        facts = profile.provenance["collectors"]["cupti"].get("counters", {})
        yield times[""], times[options.mode], {k: v for k, v in facts.items() if k != "metrics"}


def _run(workload: Workload, seconds: float) -> tuple[int, float]:
    units, began_s = 0, time.perf_counter()
    while (now_s := time.perf_counter()) < began_s + seconds:
        units += workload.block(None)
    return units, now_s - began_s


if __name__ == "__main__":
    sys.exit(main())

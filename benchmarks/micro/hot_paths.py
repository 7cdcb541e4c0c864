"""Costs of what stands on hot paths, on this machine: python benchmarks/micro/hot_paths.py.

Every figure is the best of several rounds, which is what the code costs when nothing disturbs it.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import proton_bench as proton
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.profile.builder import ProfileBuilder
from proton_bench.profile.frame import FrameKind

ROUNDS = 7
CALLS = 20_000
ROWS = 100_000
STARTS = 10


def best_ns(statement: Callable[[], object], calls: int = CALLS) -> float:
    """Return the cost of one call in ns."""
    return min(timeit.repeat(statement, number=calls, repeat=ROUNDS)) / calls * 1e9


def empty_scope() -> None:
    """Enter and leave one scope."""
    with proton.scope("scope"):
        pass


def scope_with_metric() -> None:
    """Enter and leave one scope that adds a number."""
    with proton.scope("scope", {"flops": 1.0}):
        pass


def call_nothing() -> None:
    """Cost what any call costs."""


def scope_costs() -> dict[str, float]:
    """Return ns per scope, with the call itself taken off, without and with a session."""
    call = best_ns(call_nothing)
    costs = {"scope, no session (ns)": best_ns(empty_scope) - call}
    with TemporaryDirectory() as folder:
        session = proton.start(f"{folder}/scopes", backend="cpu")
        costs["scope, one session (ns)"] = best_ns(empty_scope) - call
        costs["scope with one metric (ns)"] = best_ns(scope_with_metric) - call
        proton.finalize(session)
    return costs


def import_cost() -> dict[str, float]:
    """Return what `import proton_bench` adds to the start of an interpreter, in ms."""
    best = {"pass": float("inf"), "import proton_bench": float("inf")}
    for _ in range(STARTS):
        for statement in best:
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            best[statement] = min(best[statement], time.perf_counter() - begin)
    return {"import proton_bench (ms)": (best["import proton_bench"] - best["pass"]) * 1e3}


def file_costs() -> dict[str, float]:
    """Return ms to write, to read and to sum a tree of 100 000 rows."""
    builder = ProfileBuilder()
    for row in range(1, ROWS):
        metrics = {"time (ns)": row, "count": 1}
        builder.add((row - 1) // 8, f"kernel_{row % 977}", FrameKind.KERNEL, metrics=metrics)
    profile = builder.build()
    costs: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        for suffix in (".proton", ".hatchet"):
            path = Path(folder) / f"tree{suffix}"
            write = best_ns(lambda to=path: write_profile(profile, to), calls=1)
            read = best_ns(lambda of=path: read_profile(of), calls=1)
            costs[f"write {suffix}, 100 000 rows (ms)"] = write / 1e6
            costs[f"read {suffix}, 100 000 rows (ms)"] = read / 1e6
            costs[f"size of {suffix}, 100 000 rows (KB)"] = path.stat().st_size / 1e3
    sums = best_ns(lambda: profile.inclusive("time (ns)"), calls=1)
    costs["inclusive sums, 100 000 rows (ms)"] = sums / 1e6
    return costs


def main() -> None:
    """Print every figure with the machine it was taken on."""
    print(f"{platform.machine()}, {platform.platform()}, Python {platform.python_version()}")
    for costs in (scope_costs, import_cost, file_costs):
        for name, value in costs().items():
            print(f"{name:<40} {value:>10.1f}")


if __name__ == "__main__":
    main()

"""A small program with twenty call paths of torch on the CPU; one of them can be made slower.

``python program.py [--slow NAME --percent 10] [--launches 100] [--times FILE]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import proton_bench as proton

# Products of (rows, 128) by (128, 128), and elementwise functions of so many elements: each takes
# 30 to 200 us.
PRODUCTS = {f"product{rows}": rows for rows in (100, 130, 160, 190, 220, 250, 280, 310, 340, 370)}
FUNCTIONS = {
    "exp": 60_000,
    "sin": 50_000,
    "tanh": 40_000,
    "log": 50_000,
    "erf": 40_000,
    "cos": 50_000,
    "atan": 40_000,
    "expm1": 40_000,
    "log1p": 40_000,
    "lgamma": 10_000,
}
NAMES = (*PRODUCTS, *FUNCTIONS)


def _work(slow: str, percent: float) -> dict[str, Callable[[], object]]:
    """Return what one launch of each path does: work grows with the rows or elements."""
    import torch  # the names of the paths are wanted without it

    torch.set_num_threads(1)

    def size(name: str, count: int) -> int:
        return round(count * (1.0 + percent / 100.0)) if name == slow else count

    found: dict[str, Callable[[], object]] = {}
    right = torch.rand(128, 128)
    for name, rows in PRODUCTS.items():
        left = torch.rand(size(name, rows), 128)
        out = torch.empty(len(left), 128)
        found[name] = partial(torch.mm, left, right, out=out)
    for name, count in FUNCTIONS.items():
        values = torch.rand(size(name, count)) * 0.9 + 0.05
        result = torch.empty_like(values)
        found[name] = partial(getattr(torch, name), values, out=result)
    return found


def main() -> None:
    """Launch every path in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--slow", choices=NAMES, default="")
    parser.add_argument("--percent", type=float, default=10.0)
    parser.add_argument("--launches", type=int, default=100)
    parser.add_argument("--times", help="file for the wall and the processor time of each launch")
    options = parser.parse_args()
    work = _work(options.slow, options.percent)
    times = np.zeros((len(work), options.launches, 2))
    for launch in range(options.launches):
        for path, (name, run) in enumerate(work.items()):
            with proton.scope(name):
                before = time.perf_counter_ns(), time.thread_time_ns()
                run()
                after = time.perf_counter_ns(), time.thread_time_ns()
            times[path, launch] = np.subtract(after, before)
    if options.times:
        np.savez(options.times, names=list(work), times=times)


if __name__ == "__main__":
    main()

"""A small program with twenty call paths of torch on the CPU, or 48 on a GPU; one can be slower.

``python program.py [--device cuda] [--slow NAME --percent 10] [--launches 100] [--times FILE]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

import proton_bench as proton


@dataclass(frozen=True)
class Paths:
    """What is launched: the size of each path by its name.

    Attributes:
        products: Rows of the left side of a product with a square matrix of `width`.
        functions: Elements that an elementwise function of torch reads and writes.
        width: Columns of the left side.
    """

    products: Mapping[str, int]
    functions: Mapping[str, int]
    width: int

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, in the order of their launches."""
        return (*self.products, *self.functions)


_CPU_FUNCTIONS = {
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
# No name ends in a digit: the elements of each path stand there.
_GPU_FUNCTIONS = ("exp", "sin", "tanh", "log", "erf", "cos", "sqrt", "rsqrt")
_MI = 1 << 20
# Each takes 15 to 200 us.
PATHS = {
    "cpu": Paths({f"product{rows}": rows for rows in range(100, 400, 30)}, _CPU_FUNCTIONS, 128),
    "cuda": Paths(
        {f"product{rows}": rows for rows in range(1024, 1024 + 24 * 256, 256)},
        {f"{name}{mi}": mi * _MI for mi in (16, 24, 32) for name in _GPU_FUNCTIONS},
        2048,
    ),
}


def _work(device: str, slow: str, percent: float) -> dict[str, Callable[[], object]]:
    """Return what one launch of each path does: work grows with the rows or elements."""
    import torch  # the names of the paths are wanted without it

    torch.set_num_threads(1)
    paths = PATHS[device]

    rand = partial(torch.rand, device=device)
    kind = torch.bfloat16 if device == "cuda" else torch.float32  # of products

    def size(name: str, count: int) -> int:
        return round(count * (1.0 + percent / 100.0)) if name == slow else count

    found: dict[str, Callable[[], object]] = {}
    right = rand(paths.width, paths.width, dtype=kind)
    for name, rows in paths.products.items():
        left = rand(size(name, rows), paths.width, dtype=kind)
        out = torch.empty_like(left)
        found[name] = partial(torch.mm, left, right, out=out)
    for name, count in paths.functions.items():
        values = rand(size(name, count)) * 0.9 + 0.05
        result = torch.empty_like(values)
        function = getattr(torch, name.rstrip("0123456789") if device == "cuda" else name)
        found[name] = partial(function, values, out=result)
    return found


def main() -> None:
    """Launch every path in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=tuple(PATHS), default="cpu")
    parser.add_argument("--slow", metavar="NAME", default="")
    parser.add_argument("--percent", type=float, default=10.0)
    parser.add_argument("--launches", type=int, default=100)
    parser.add_argument("--times", help="file for the wall and the processor time of each launch")
    options = parser.parse_args()
    work = _work(options.device, options.slow, options.percent)
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

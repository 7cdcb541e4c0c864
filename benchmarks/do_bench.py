"""`bench` against ``triton.testing``: agreement, spread and the time of an answer, on a GPU.

``python -m benchmarks.do_bench [KERNEL...] [--repeats N]``. Each way answers once in
each repeat, in turn.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from triton.testing import do_bench, do_bench_cudagraph

from benchmarks import triton_kernels
from proton_bench import bench

Call = Callable[[], object]
_ROWS = 8192


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, device="cuda")


def _add(numbers: int) -> Call:
    x = _random(numbers)
    return functools.partial(torch.add, x, x, out=torch.empty_like(x))


def _matmul(size: int, dtype: torch.dtype) -> Call:
    x = _random(size, size, dtype=dtype)
    return functools.partial(torch.mm, x, x, out=torch.empty_like(x))


def _by_row(kernel: Any, width: int, vectors: int) -> Call:
    x, others = _random(_ROWS, width), [_random(width) for _ in range(vectors)]
    y = torch.empty_like(x)
    return lambda: kernel[(_ROWS,)](x, y, *others, 1, EXTRA=0, WIDTH=width)


def _attention(length: int) -> Call:
    x = _random(4, 16, length, 64, dtype=torch.float16)
    return functools.partial(torch.nn.functional.scaled_dot_product_attention, x, x, x)


KERNELS: dict[str, Callable[[], Call]] = {
    "add 64 Ki": lambda: _add(1 << 16),
    "matmul 256 fp16": lambda: _matmul(256, torch.float16),
    "add 4 Mi": lambda: _add(1 << 22),
    "matmul 2048 fp16": lambda: _matmul(2048, torch.float16),
    "Triton softmax 8192 x 1024": lambda: _by_row(triton_kernels.softmax, 1024, 0),
    "Triton layer norm 8192 x 4096": lambda: _by_row(triton_kernels.layer_norm, 4096, 2),
    "attention 4 x 16 x 4096 fp16": lambda: _attention(4096),
    "add 256 Mi": lambda: _add(1 << 28),
    "matmul 8192 fp16": lambda: _matmul(8192, torch.float16),
    "matmul 6144 fp32": lambda: _matmul(6144, torch.float32),
}
WAYS: dict[str, Callable[[Call], float]] = {
    "bench": lambda call: float(bench(call)),
    "do_bench": lambda call: do_bench(call, return_mode="median"),
    "bench warm": lambda call: float(bench(call, cache="warm")),
    "bench warm graph": lambda call: float(bench(call, cache="warm", graph=True)),
    "do_bench_cudagraph": lambda call: do_bench_cudagraph(call, return_mode="median"),
}


def main() -> None:
    """Measure and print a table; the first answers of each kernel are left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    begin = time.perf_counter()
    bench(KERNELS["add 64 Ki"]())
    print(f"first bench of the process: {time.perf_counter() - begin:.2f} s")
    for name in options.kernels or KERNELS:
        call = KERNELS[name]()
        answers: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
        for _ in range(options.repeats + 1):
            for way, answer in WAYS.items():
                begin = time.perf_counter()
                answers[way].append((answer(call) * 1e3, time.perf_counter() - begin))
        for way, found in answers.items():
            us, seconds = zip(*found[1:], strict=True)
            middle, spread = statistics.median(us), max(us) / min(us)
            took = statistics.median(seconds)
            print(f"{name:30} {way:20} {middle:10.2f} us  spread {spread:.3f}  {took:.2f} s")


if __name__ == "__main__":
    main()

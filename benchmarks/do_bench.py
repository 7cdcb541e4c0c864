"""`bench` against ``triton.testing``: agreement, spread and the time of an answer, on a GPU.

``python -m benchmarks.do_bench [KERNEL...] [--repeats N] [--json FILE]``. Each way answers once in
each repeat, in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
from triton.testing import do_bench, do_bench_cudagraph

from benchmarks import triton_kernels
from proton_bench import bench

Call = Callable[[], object]
_ROWS = 8192


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, device="cuda")


def _add(numbers: int) -> Call:
    x, y = _random(numbers), _random(numbers)
    out = torch.empty_like(x)
    return lambda: torch.add(x, y, out=out)


def _matmul(size: int, dtype: torch.dtype) -> Call:
    a, b = _random(size, size, dtype=dtype), _random(size, size, dtype=dtype)
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def _softmax(width: int) -> Call:
    x = _random(_ROWS, width)
    y = torch.empty_like(x)
    return lambda: triton_kernels.softmax[(_ROWS,)](x, y, 1, EXTRA=0, WIDTH=width)


def _layer_norm(width: int) -> Call:
    x, weight, bias = _random(_ROWS, width), _random(width), _random(width)
    y = torch.empty_like(x)
    return lambda: triton_kernels.layer_norm[(_ROWS,)](x, y, weight, bias, 1, EXTRA=0, WIDTH=width)


def _attention(length: int) -> Call:
    q, k, v = (_random(4, 16, length, 64, dtype=torch.float16) for _ in range(3))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)


KERNELS: dict[str, Callable[[], Call]] = {
    "add 64 Ki": lambda: _add(1 << 16),
    "matmul 256 fp16": lambda: _matmul(256, torch.float16),
    "add 4 Mi": lambda: _add(1 << 22),
    "matmul 2048 fp16": lambda: _matmul(2048, torch.float16),
    "Triton softmax 8192 x 1024": lambda: _softmax(1024),
    "Triton layer norm 8192 x 4096": lambda: _layer_norm(4096),
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


def measure(name: str, repeats: int) -> dict[str, Any]:
    """Return the times in ms and the seconds of each answer, by way; a first one is left out."""
    call = KERNELS[name]()
    found: dict[str, Any] = {way: {"ms": [], "seconds": []} for way in WAYS}
    for repeat in range(repeats + 1):
        for way, answer in WAYS.items():
            begin = time.perf_counter()
            ms = answer(call)
            if repeat:
                found[way]["seconds"].append(time.perf_counter() - begin)
                found[way]["ms"].append(ms)
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    begin = time.perf_counter()
    bench(KERNELS["add 64 Ki"]())
    print(f"first bench of the process: {time.perf_counter() - begin:.2f} s")
    for name in options.kernels or KERNELS:
        found[name] = measure(name, options.repeats)
        torch.cuda.empty_cache()
        for way, each in found[name].items():
            ms, seconds = each["ms"], statistics.median(each["seconds"])
            middle, spread = statistics.median(ms) * 1e3, max(ms) / min(ms)
            print(f"{name:30} {way:20} {middle:10.2f} us  spread {spread:.3f}  {seconds:.2f} s")
        if options.json is not None:
            facts = {"torch": torch.__version__, "triton": triton.__version__}
            gpu = torch.cuda.get_device_name()
            options.json.write_text(json.dumps({**facts, "gpu": gpu, "kernels": found}))


if __name__ == "__main__":
    main()

"""Runs the study's kernels in turn, each in a scope; recorded by `study`."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import torch

import proton_bench as proton
from benchmarks.studies.why import kernels
from benchmarks.studies.why.labels import LABELS, SEED
from proton_bench.diagnosis.calibration_kernels import fma_chains, reread

_GIB = 1 << 30
_BLOCKS_PER_SM = 16

Work = Callable[[], Any]


def make_work() -> dict[str, Work]:
    """Return what launches one kernel of at least 100 us, by label."""
    return {**_memory(), **_caches(), **_compute(), **_latency(), **_grids()}


def _memory() -> dict[str, Work]:
    size = _GIB // 4
    values = torch.zeros(size, device="cuda")
    out = torch.empty_like(values)
    order = torch.randperm(1 << 26, device="cuda", dtype=torch.int32)
    bins = torch.zeros(64, dtype=torch.int32, device="cuda")
    host = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True)
    device = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    width = 4096
    far = torch.randint(0, size, (1 << 25,), device="cuda")
    few = torch.randint(0, 16, (1 << 24,), device="cuda")
    return {
        "field": lambda: kernels.field_sum[(size // 16 // 1024,)](
            values, out, FIELDS=16, WIDTH=1024
        ),
        "column-softmax": lambda: kernels.column_softmax[(8192,)](
            values, out, ROWS=4096, WIDTH=8192, num_warps=8
        ),
        "take": lambda: torch.take(values, far),
        "scatter-add": lambda: out[:16].scatter_add_(0, few, values[: 1 << 24]),
        "dram-copy": lambda: out.copy_(values),
        "dram-read": lambda: kernels.total[(size // width,)](values, out, size, WIDTH=width),
        "dram-write": lambda: kernels.fill[(size // 1024,)](out, size, WIDTH=1024),
        "dram-softmax": lambda: kernels.row_softmax[(size // width,)](values, out, WIDTH=width),
        "uncoalesced": lambda: kernels.strided[(size // 32 // 1024,)](
            values, out, STRIDE=32, WIDTH=1024
        ),
        "random-gather": lambda: kernels.gather[(len(order) // 1024,)](
            values, order, out, WIDTH=1024
        ),
        "random-scatter": lambda: kernels.scatter[(len(order) // 1024,)](order, out, WIDTH=1024),
        "histogram": lambda: kernels.histogram[(len(order) // 4096,)](
            order, bins, BINS=64, WIDTH=1024
        ),
        "column-read": lambda: kernels.column_read[(8192,)](
            values, out, ROWS=8192, WIDTH=8192, num_warps=8
        ),
        "column-write": lambda: kernels.column_write[(8192,)](
            out, ROWS=8192, WIDTH=8192, num_warps=8
        ),
        "copy-engine": lambda: device.copy_(host, non_blocking=True),
    }


def _caches() -> dict[str, Work]:
    blocks = 8 * _multiprocessors()
    values = torch.zeros(5 << 20, device="cuda")
    out = torch.zeros(blocks * 256, device="cuda")
    words = torch.zeros(blocks * 256, dtype=torch.int32, device="cuda")

    def again(rounds: int, *, size: int, step: int, cache: str) -> Work:
        return lambda: reread[(blocks,)](values, out, rounds, SIZE=size, STEP=step, CACHE=cache)

    def shared(rounds: int, stride: str) -> Work:
        return lambda: kernels.shared_memory[(blocks,)](words, rounds, STRIDE=stride, num_warps=8)

    return {
        "l2-resident": again(128, size=4 << 20, step=1024, cache=".cg"),
        "l1-resident": again(400, size=1024, step=32, cache=".ca"),
        "strided-cache": lambda: kernels.strided_cache[(blocks,)](
            values, out, 400, STRIDE=32, WIDTH=256, num_warps=8
        ),
        "shared-bandwidth": shared(4000, "4"),
        "shared-conflict": shared(400, "128"),
    }


def _compute() -> dict[str, Work]:
    blocks = _BLOCKS_PER_SM * _multiprocessors()
    single = torch.zeros(blocks * 1024, device="cuda")
    double = torch.zeros(blocks * 1024, device="cuda", dtype=torch.float64)
    whole = torch.zeros(blocks * 1024, device="cuda", dtype=torch.int32)
    zeros = torch.zeros(4096, 4096, device="cuda", dtype=torch.float16)
    left = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    right = torch.randn_like(left)
    result, product = torch.empty_like(zeros), torch.empty_like(left)
    tiles = (4096 // 128) ** 2
    return {
        "tensor-zeros": lambda: torch.mm(zeros, zeros, out=result),
        "power-capped": lambda: torch.mm(left, right, out=product),
        "tensor-triton": lambda: kernels.product[(tiles,)](
            zeros, zeros, result, SIZE=4096, TILE=128, DEEP=64, num_warps=8, num_stages=4
        ),
        "fp32-fma": lambda: fma_chains[(blocks,)](single, 1.0001, 256),
        "fp64-fma": lambda: fma_chains[(blocks,)](double, 1.0001, 128),
        "integers": lambda: kernels.integers[(blocks,)](whole, 128, WIDTH=1024),
        "exponents": lambda: kernels.exponents[(blocks,)](single, 128, WIDTH=1024),
        "sigmoids": lambda: kernels.sigmoids[(blocks,)](single, 128, WIDTH=1024),
        "roots": lambda: kernels.roots[(blocks,)](single, 128, WIDTH=1024),
        "issue-bound": lambda: kernels.issue[(blocks,)](whole, 256, WIDTH=1024),
    }


def _latency() -> dict[str, Work]:
    count = _multiprocessors()
    out = torch.zeros(count * 4096, device="cuda")
    numbers = torch.zeros(count * 4096, dtype=torch.int32, device="cuda")
    # One cycle through all places, so that no chase comes back early.
    places = torch.randperm(64 << 20, device="cuda")
    following = torch.empty_like(places)
    following[places] = places.roll(-1)
    ends = torch.zeros(count, dtype=torch.int64, device="cuda")
    wide = torch.zeros(8 * count * 8192, device="cuda")
    held = torch.empty_like(wide)
    return {
        "latency-dependency": lambda: kernels.dependent[(4 * count,)](
            out, 1.0001, 4000, num_warps=1
        ),
        "latency-scoreboard": lambda: kernels.chase[(count,)](following, ends, 400, num_warps=1),
        "latency-barrier": lambda: kernels.barriers[(2 * count,)](numbers, 400, num_warps=32),
        "reductions": lambda: kernels.reductions[(2 * count,)](out, 1000, num_warps=32),
        "meetings": lambda: kernels.meetings[(count,)](out, 1.0001, 4000, num_warps=32),
        "atomics": lambda: kernels.atomics[(4 * count,)](numbers, 60),
        "one-atomic": lambda: kernels.one_atomic[(8 * count,)](numbers, 120, num_warps=1),
        "spills": lambda: kernels.spills[(8 * count,)](wide, held, 20, WIDTH=8192, num_warps=1),
    }


def _grids() -> dict[str, Work]:
    blocks = _BLOCKS_PER_SM * _multiprocessors()
    out = torch.zeros(blocks * 1024, device="cuda")
    lengths = torch.full((blocks,), 1 << 14, dtype=torch.int32)
    lengths[::40] *= 60
    starts = torch.cat([torch.zeros(1, dtype=torch.int32), lengths.cumsum(0, dtype=torch.int32)])
    starts, values = starts.cuda(), torch.zeros(int(lengths.sum()), device="cuda")
    return {
        "ragged": lambda: kernels.ragged_rows[(blocks,)](values, starts, out, WIDTH=1024),
        "tail": lambda: kernels.uneven[(blocks,)](out, 1.0001, 64, WIDTH=1024),
        "small-grid": lambda: fma_chains[(8,)](out, 1.0001, 4000),
    }


def _multiprocessors() -> int:
    return int(torch.cuda.get_device_properties(0).multi_processor_count)


def main() -> None:
    """Run every kernel for a while, in a new order each round."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--slice-ms", type=float, default=20.0, help="time of a kernel per round")
    parser.add_argument("--mixed", action="store_true", help="single launches in a random order")
    parser.add_argument("--only", default="", help="names of labels with commas between them")
    options = parser.parse_args()
    only = options.only.split(",") if options.only else [label.name for label in LABELS]
    with proton.scope("warm-up"):
        work = make_work()
        lengths_s = {name: _length_s(launch) for name, launch in work.items() if name in only}
    launches = {
        name: max(2, round(options.slice_ms / 1e3 / length_s))
        for name, length_s in lengths_s.items()
    }
    chance = random.Random(SEED)
    torch.cuda.cudart().cudaProfilerStart()  # Nsight Compute counts from here on
    for _ in range(options.rounds):
        order = list(only)
        if options.mixed:
            order = [name for name in order for _ in range(launches[name])]
        chance.shuffle(order)
        for name in order:
            _run(name, work[name], 1 if options.mixed else launches[name])
            if not options.mixed:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()
    for name, length_s in lengths_s.items():
        print(f"{name}: {1e6 * length_s:.0f} us, {launches[name]} launches a round")


def _run(name: str, launch: Work, launches: int) -> None:
    with proton.scope(name):
        for _ in range(launches):
            launch()


def _length_s(launch: Work) -> float:
    """Compile, warm up, and return how long a launch takes."""
    for _ in range(3):
        launch()
    torch.cuda.synchronize()
    began_s = time.perf_counter()
    for _ in range(5):
        launch()
    torch.cuda.synchronize()
    return (time.perf_counter() - began_s) / 5


if __name__ == "__main__":
    main()

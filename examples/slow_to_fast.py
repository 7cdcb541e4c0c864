"""Three kernels from slow to fast, for `proton run -m counters` and `proton why`.

Each pair does the same work: rows summed by loads that lie apart and by loads side by side, one sum
by few programs and by many, and a product in FP32 and with tensor cores (TF32).
"""

# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from device import DEVICE  # before triton: switches its interpreter on without a GPU

# isort: split
import torch
import triton
import triton.language as tl

import proton_bench as proton

SECONDS = 1.0

Launch = Callable[[], object]
Kernel = tuple[Launch, torch.Tensor]


@triton.jit
def sum_rows(values, out, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """Each lane walks along a row of its own: neighbours load from lines that lie apart."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), tl.float32)
    for column in range(COLUMNS):
        total += tl.load(values + rows * COLUMNS + column)
    tl.store(out + rows, total)


@triton.jit
def sum_row(values, out, COLUMNS: tl.constexpr):
    """All lanes load from one row: neighbours load side by side."""
    row = tl.program_id(0)
    total = tl.sum(tl.load(values + row * COLUMNS + tl.arange(0, COLUMNS)))
    tl.store(out + row, total)


@triton.jit
def sum_part(values, out, size, WIDTH: tl.constexpr):
    """Each program sums as many values as it takes for all programs to sum all."""
    number, count = tl.program_id(0), tl.num_programs(0)
    total = tl.zeros((WIDTH,), tl.float32)
    for start in range(number * WIDTH, size, count * WIDTH):
        places = start + tl.arange(0, WIDTH)
        total += tl.load(values + places, mask=places < size, other=0.0)
    tl.atomic_add(out, tl.sum(total))


@triton.jit
def product(left, right, out, SIZE: tl.constexpr, TILE: tl.constexpr, PRECISION: tl.constexpr):
    """A product of square matrices of FP32, in tiles."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    deep = tl.arange(0, 32)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, SIZE, 32):
        a = tl.load(left + row[:, None] * SIZE + start + deep[None, :])
        b = tl.load(right + (start + deep[:, None]) * SIZE + column[None, :])
        total = tl.dot(a, b, total, input_precision=PRECISION)
    tl.store(out + row[:, None] * SIZE + column[None, :], total)


def make_kernels(rows: int, columns: int, size: int) -> Mapping[str, Kernel]:
    """Return each kernel by its name: what launches it, and the tensor of its result.

    Args:
        rows: Rows that are summed, a multiple of 128.
        columns: Their length, a power of two.
        size: Rows and columns of the product's matrices, a multiple of 64.
    """
    values = torch.ones(rows, columns, device=DEVICE)
    sums = [torch.empty(rows, device=DEVICE) for _ in range(2)]
    totals = [torch.zeros(1, device=DEVICE) for _ in range(2)]
    left, right = (torch.randn(size, size, device=DEVICE) for _ in range(2))
    products = [torch.empty_like(left) for _ in range(2)]
    number, tiles = values.numel(), (size // 64, size // 64)

    def total(programs: int, out: torch.Tensor) -> Launch:
        return lambda: sum_part[(programs,)](values, out, number, WIDTH=4096)

    def multiply(precision: str, out: torch.Tensor) -> Launch:
        return lambda: product[tiles](left, right, out, size, TILE=64, PRECISION=precision)

    return {
        "rows: loads apart": (
            lambda: sum_rows[(rows // 128,)](values, sums[0], columns, ROWS=128),
            sums[0],
        ),
        "rows: side by side": (lambda: sum_row[(rows,)](values, sums[1], columns), sums[1]),
        "sum: 16 programs": (total(16, totals[0]), totals[0]),
        "sum: 2048 programs": (total(2048, totals[1]), totals[1]),
        "product: FP32": (multiply("ieee", products[0]), products[0]),
        "product: TF32": (multiply("tf32", products[1]), products[1]),
    }


def main() -> None:
    """Run all kernels in turn for some seconds, each in a scope."""
    kernels = make_kernels(rows=1 << 17, columns=1024, size=2048)
    for launch, _ in kernels.values():
        launch()
    torch.cuda.synchronize()
    end_s = time.monotonic() + SECONDS * len(kernels)
    while time.monotonic() < end_s:
        for name, (launch, _) in kernels.items():
            with proton.scope(name):
                launch()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()

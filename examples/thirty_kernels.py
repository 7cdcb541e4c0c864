"""Thirty kernels, one of which can be made slower, to try `proton ab`.

proton ab --base examples/thirty_kernels.py -- examples/thirty_kernels.py --slower 13 --percent 5
"""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

import argparse

from device import DEVICE, pick  # before triton: switches its interpreter on without a GPU

# isort: split
import torch
import triton
import triton.language as tl

import proton_bench as proton

__all__ = ["main"]

KERNELS = 30


@triton.jit
def iterate_kernel(out, x, loops, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    values = tl.load(x + offsets, mask=inside, other=0.0)
    for _ in range(loops):
        values = values * 0.5 + 1.0
    tl.store(out + offsets, values, mask=inside)


def main() -> None:
    """Launch every kernel several times, each under a scope of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slower", type=int, default=-1, help="number of a kernel, 0 to 29")
    parser.add_argument("--percent", type=float, default=5.0, help="more iterations of its loop")
    options = parser.parse_args()
    block, launches = pick(full=1024, small=64), pick(full=50, small=2)
    x = torch.rand(pick(full=1 << 20, small=64), device=DEVICE)
    out = torch.empty_like(x)
    for number in range(KERNELS):
        loops = pick(full=2000, small=20) + pick(full=100, small=1) * number
        if number == options.slower:
            loops = round(loops * (1.0 + options.percent / 100.0))
        with proton.scope(f"kernel{number:02d}"):
            for _ in range(launches):
                iterate_kernel[(triton.cdiv(x.numel(), block),)](out, x, loops, x.numel(), block)
    torch.testing.assert_close(out, torch.full_like(x, 2.0))  # where the iteration comes to rest


if __name__ == "__main__":
    main()

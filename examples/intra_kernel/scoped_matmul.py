"""Matrix product whose kernel measures how long it loads and multiplies.

python examples/intra_kernel/scoped_matmul.py --op-measure
python examples/intra_kernel/scoped_matmul.py --warp-sampling --warp-ids 0 --increase-accuracy
proton view scoped_matmul.hatchet -m cycles,normalized_cycles
"""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

from recording import Options, parse, recorded  # before triton: switches its interpreter on

# isort: split
import torch
import triton
import triton.language as tl
from device import DEVICE, pick

import proton_bench.language as pl

__all__ = ["main", "matmul"]

TILES = pick(
    full={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    small={"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16},
)


@triton.jit
def scoped_matmul_kernel(
    c,
    a,
    b,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    # Every size is a multiple of its block, so the scopes contain no masks.
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    with pl.scope("product"):
        for start in range(0, K, BLOCK_K):
            with pl.scope("load"):
                a_tile = tl.load(a + rows[:, None] * K + start + inner[None, :])
                b_tile = tl.load(b + (start + inner[:, None]) * N + columns[None, :])
            with pl.scope("dot"):
                sums = tl.dot(a_tile, b_tile, sums)
    with pl.scope("store"):
        tl.store(c + rows[:, None] * N + columns[None, :], sums.to(c.dtype.element_ty))


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return ``a @ b`` for row-major matrices, accumulated in float32.

    Args:
        a: Matrix [m, k]; sizes are multiples of the blocks.
        b: Matrix [k, n].
    """
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    grid = (m // TILES["BLOCK_M"], n // TILES["BLOCK_N"])
    scoped_matmul_kernel[grid](c, a, b, n, k, **TILES, num_warps=8, num_stages=1)
    return c


def main(options: Options | None = None) -> None:
    """Record one launch and check it against torch.

    Args:
        options: What to record; the command line's by default.
    """
    options = parse(__doc__) if options is None else options
    size = pick(full=1024, small=48)
    a, b = (torch.randn(size, size, device=DEVICE, dtype=torch.float16) for _ in range(2))
    with recorded("scoped_matmul", options):
        ours = matmul(a, b)
    torch.testing.assert_close(ours, a @ b, rtol=1e-2, atol=1e-1)
    print("scoped_matmul: agrees with torch")


if __name__ == "__main__":
    main()

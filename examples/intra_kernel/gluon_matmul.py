"""Matrix product in Gluon, with scopes around what a Hopper GPU does asynchronously.

python examples/intra_kernel/gluon_matmul.py --op-measure
proton view gluon_matmul.hatchet -m cycles,normalized_cycles

A copy by the tensor memory accelerator and a product by a warp group cost next to nothing where
they are issued, so each has a scope around the wait for it too. Needs a GPU with both (sm_90).
"""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

from recording import Options, parse, recorded  # before triton: switches its interpreter on

# isort: split
import torch
from device import DEVICE, ON_GPU
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

import proton_bench.language as pl

__all__ = ["main", "matmul", "missing"]

TILE, TILE_K, NUM_WARPS = 128, 64, 4
# Triton 3.9 calls it async_load; before, it had the longer name.
copy_in = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared


@gluon.jit
def gluon_matmul_kernel(a, b, c, N, K, NUM_WARPS: gl.constexpr):
    tile_m: gl.constexpr = a.block_type.shape[0]
    tile_n: gl.constexpr = b.block_type.shape[1]
    tile_k: gl.constexpr = a.block_type.shape[1]
    row = gl.program_id(0) * tile_m
    column = gl.program_id(1) * tile_n
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    arrived = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(arrived, count=1)
    fence_async_shared()
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[NUM_WARPS, 1], instr_shape=[16, tile_n, 16]
    )
    sums = gl.zeros((tile_m, tile_n), gl.float32, layout)
    phase = 0
    for start in range(0, K, tile_k):
        with pl.scope("copy"):
            with pl.scope("copy_issue"):
                mbarrier.expect(arrived, a.block_type.nbytes + b.block_type.nbytes)
                copy_in(a, [row, start], arrived, a_tile)
                copy_in(b, [start, column], arrived, b_tile)
            with pl.scope("copy_wait"):
                mbarrier.wait(arrived, phase)
        with pl.scope("dot"):
            with pl.scope("dot_issue"):
                sums = warpgroup_mma(a_tile, b_tile, sums, is_async=True)
            with pl.scope("dot_wait"):
                sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
        phase ^= 1
    mbarrier.invalidate(arrived)
    with pl.scope("store"):
        rows = row + gl.arange(0, tile_m, gl.SliceLayout(1, layout))
        columns = column + gl.arange(0, tile_n, gl.SliceLayout(0, layout))
        gl.store(c + rows[:, None] * N + columns[None, :], sums.to(c.dtype.element_ty))


def missing() -> str:
    """Return why the kernel cannot run here, or an empty string."""
    if not ON_GPU:
        return "no GPU, and the interpreter does not run this kernel"
    if torch.cuda.get_device_capability()[0] != 9:
        return "warp-group products of this form need a GPU of compute capability 9.0"
    return ""


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return ``a @ b`` for row-major float16 matrices, accumulated in float32.

    Args:
        a: Matrix [m, k]; m is a multiple of 128, k of 64.
        b: Matrix [k, n]; n is a multiple of 128.
    """
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    a_block, b_block = [TILE, TILE_K], [TILE_K, TILE]
    a_layout, b_layout = (
        gl.NVMMASharedLayout.get_default_for(block, gl.float16) for block in (a_block, b_block)
    )
    gluon_matmul_kernel[(m // TILE, n // TILE)](
        TensorDescriptor.from_tensor(a, a_block, a_layout),
        TensorDescriptor.from_tensor(b, b_block, b_layout),
        c,
        n,
        k,
        NUM_WARPS=NUM_WARPS,
        num_warps=NUM_WARPS,
    )
    return c


def main(options: Options | None = None) -> None:
    """Record one launch and check it against torch.

    Args:
        options: What to record; the command line's by default.
    """
    options = parse(__doc__) if options is None else options
    if reason := missing():
        print(f"gluon_matmul: skipped: {reason}")
        return
    a, b = (torch.randn(1024, 1024, device=DEVICE, dtype=torch.float16) for _ in range(2))
    with recorded("gluon_matmul", options):
        ours = matmul(a, b)
    torch.testing.assert_close(ours, a @ b, rtol=1e-2, atol=1e-1)
    print("gluon_matmul: agrees with torch")


if __name__ == "__main__":
    main()

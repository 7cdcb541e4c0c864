"""Matrix product with autotuned tile sizes.

Run it::

    proton examples/matmul.py
    proton pytest examples/test_matmul.py

In the profile the autotuner's trials are under ``<autotune>``, apart from the real launch.
"""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

from device import DEVICE, pick  # before triton: switches its interpreter on without a GPU

# isort: split
import torch
import triton
import triton.language as tl

import proton_bench as proton

__all__ = ["main", "matmul"]


def tile(m: int, n: int, k: int, *, warps: int, stages: int) -> triton.Config:
    """Return one candidate for the autotuner."""
    tiles = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}
    return triton.Config(tiles, num_warps=warps, num_stages=stages)


CONFIGS = pick(
    full=[
        tile(128, 256, 64, warps=8, stages=3),
        tile(128, 128, 64, warps=8, stages=3),
        tile(128, 64, 64, warps=4, stages=4),
        tile(64, 128, 32, warps=4, stages=4),
        tile(64, 64, 64, warps=4, stages=4),
    ],
    small=[
        tile(32, 32, 32, warps=4, stages=1),
        tile(64, 32, 64, warps=4, stages=1),
    ],
)


def matmul_metadata(grid, metadata, args):
    """Describe one launch; flops are named by the width of the inputs."""
    m, n, k = args["M"], args["N"], args["K"]
    size_bytes = args["a"].element_size()
    return {
        "name": f"matmul_{m}x{n}x{k}",
        f"flops{size_bytes * 8}": 2.0 * m * n * k,
        "bytes": size_bytes * (m * k + k * n + m * n),
    }


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"])
@triton.jit(launch_metadata=matmul_metadata)
def matmul_kernel(
    a,
    b,
    c,
    M,
    N,
    K,
    a_stride,
    b_stride,
    c_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    # Tiles are walked in groups of GROUP_M rows so that neighbours share columns of b in L2.
    program = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * tiles_n
    first_m = (program // in_group) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    tile_m = first_m + (program % in_group) % group_m
    tile_n = (program % in_group) // group_m

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        left = (rows[:, None] < M) & (start + inner[None, :] < K)
        right = (start + inner[:, None] < K) & (columns[None, :] < N)
        a_tile = tl.load(a + rows[:, None] * a_stride + start + inner[None, :], left, 0.0)
        b_tile = tl.load(b + (start + inner[:, None]) * b_stride + columns[None, :], right, 0.0)
        sums = tl.dot(a_tile, b_tile, sums)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * c_stride + columns[None, :], sums.to(c.dtype.element_ty), inside)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return ``a @ b`` for row-major matrices, accumulated in float32.

    Args:
        a: Matrix [m, k].
        b: Matrix [k, n].
    """
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    matmul_kernel[
        lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)
    ](a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0))
    return c


def main() -> None:
    """Profile two sizes and check each against torch."""
    session = proton.start("matmul", hook="triton")
    for m, n, k in pick(full=((2048, 2048, 2048), (4096, 4096, 1024)), small=((64, 64, 64),)):
        with proton.scope(f"{m}x{n}x{k}"):
            a = torch.randn(m, k, device=DEVICE, dtype=torch.float16)
            b = torch.randn(k, n, device=DEVICE, dtype=torch.float16)
            with proton.scope("triton"):
                ours = matmul(a, b)
            with proton.scope("torch"):
                reference = a @ b
            torch.testing.assert_close(ours, reference, rtol=1e-2, atol=1e-1)
    proton.finalize(session)
    print(f"matmul: agrees with torch; best configuration {matmul_kernel.best_config}")


if __name__ == "__main__":
    main()

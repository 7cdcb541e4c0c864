"""More kernels with scopes: autotuned, with warps that specialize, with clusters."""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from instrumented_kernels import PROGRAMS, WARPS, Vectors
from triton.tools.tensor_descriptor import TensorDescriptor

import proton_bench.language as pl

TILE = 128
TILE_K = 64


def add_metadata(_grid: object, _metadata: object, arguments: Any) -> dict[str, str]:
    return {"name": f"add_{arguments['BLOCK']}"}


@triton.jit(launch_metadata=add_metadata)
def add(out, x, y, size, BLOCK: tl.constexpr):
    """Add, in blocks that the tuner chooses."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    with pl.scope("add"):
        total = tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside)
        tl.store(out + offsets, total, mask=inside)


def tuned(vectors: Vectors) -> None:
    """Add with the best of three block sizes, which the tuner has to find out."""
    configs = [triton.Config({"BLOCK": block}, num_warps=4) for block in (256, 512, 1024)]
    size = vectors.x.numel()
    triton.autotune(configs=configs, key=["size"])(add)[
        lambda meta: (triton.cdiv(size, meta["BLOCK"]),)
    ](vectors.out, vectors.x, vectors.y, size)


@triton.jit
def specialized(a, b, c, tiles, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """Multiply matrices; the compiler may let some warps load and others multiply."""
    row, column = tl.program_id(0) * TILE_M, tl.program_id(1) * TILE_N
    sums = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    with pl.scope("product"):
        for step in tl.range(tiles, warp_specialize=True, num_stages=3):
            left = a.load([row, step * TILE_K])
            right = b.load([column, step * TILE_K])
            sums = tl.dot(left, right.T, sums)
    c.store([row, column], sums.to(tl.float16))


def warp_specialized_product() -> tuple[Any, Any]:
    """Return a product and torch's result."""
    a, b = (torch.randn(512, 512).half().cuda() for _ in range(2))
    c = torch.empty_like(a)
    specialized[(512 // TILE, 512 // TILE)](
        TensorDescriptor.from_tensor(a, [TILE, TILE_K]),
        TensorDescriptor.from_tensor(b, [TILE, TILE_K]),
        TensorDescriptor.from_tensor(c, [TILE, TILE]),
        512 // TILE_K,
        TILE_M=TILE,
        TILE_N=TILE,
        TILE_K=TILE_K,
        num_warps=8,  # with fewer, this pass of the compiler fails, with scopes and without
    )
    return c, a @ b.T


@triton.jit
def descriptor_copy(target, source, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Copy one tile with the tensor memory accelerator."""
    at = tl.program_id(0) * ROWS
    with pl.scope("copy"):
        target.store([at, 0], source.load([at, 0]))


def two_cta_copy(ctas: int) -> tuple[Any, Any]:
    """Return a matrix and its copy, which clusters of ``ctas`` programs made."""
    rows, columns = 64, 128
    source = torch.randn(PROGRAMS * rows, columns).half().cuda()
    target = torch.zeros_like(source)
    descriptors = (TensorDescriptor.from_tensor(each, [rows, columns]) for each in (target, source))
    descriptor_copy[(PROGRAMS,)](
        *descriptors, ROWS=rows, COLUMNS=columns, num_warps=WARPS, num_ctas=ctas
    )
    return source, target

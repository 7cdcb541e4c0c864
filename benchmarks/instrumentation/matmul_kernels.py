"""Kernels that multiply matrices, with scopes around the loop and the code after it."""

# Kernels take their arguments by position, and constants in Triton's capitals.
# ruff: noqa: N803, PLR0913, PLR0917
from __future__ import annotations

import triton
import triton.language as tl

from benchmarks.instrumentation.language import pl


@triton.jit
def persistent_matmul(  # type: ignore[no-untyped-def]
    c, a, b, M, N, K, TILE: tl.constexpr, TILE_K: tl.constexpr, PROGRAMS: tl.constexpr
):
    """Multiply matrices in as many programs as fit; each computes several tiles."""
    columns_of_tiles = tl.cdiv(N, TILE)
    tiles = tl.cdiv(M, TILE) * columns_of_tiles
    inner = tl.arange(0, TILE_K)
    for tile in range(tl.program_id(0), tiles, PROGRAMS):
        rows = (tile // columns_of_tiles) * TILE + tl.arange(0, TILE)
        columns = (tile % columns_of_tiles) * TILE + tl.arange(0, TILE)
        sums = tl.zeros((TILE, TILE), dtype=tl.float32)
        pl.enter_scope("product")
        for start in range(0, K, TILE_K):
            left = tl.load(a + rows[:, None] * K + start + inner[None, :])
            right = tl.load(b + (start + inner[:, None]) * N + columns[None, :])
            sums = tl.dot(left, right, sums)
        pl.exit_scope("product")
        pl.enter_scope("store")
        tl.store(c + rows[:, None] * N + columns[None, :], sums.to(tl.float16))
        pl.exit_scope("store")


@triton.jit
def grouped_matmul(  # type: ignore[no-untyped-def]
    c, a, b, row_of_group, N, K, GROUPS: tl.constexpr, TILE: tl.constexpr, TILE_K: tl.constexpr
):
    """Multiply the rows of each group by a matrix of its own; groups begin at whole tiles."""
    row = tl.program_id(0) * TILE
    pl.enter_scope("find_group")
    group = 0
    for number in tl.static_range(1, GROUPS):
        group += (tl.load(row_of_group + number) <= row).to(tl.int32)
    pl.exit_scope("find_group")
    rows = row + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, TILE_K)
    weights = b + group.to(tl.int64) * K * N
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    pl.enter_scope("product")
    for start in range(0, K, TILE_K):
        left = tl.load(a + rows[:, None] * K + start + inner[None, :])
        right = tl.load(weights + (start + inner[:, None]) * N + columns[None, :])
        sums = tl.dot(left, right, sums)
    pl.exit_scope("product")
    pl.enter_scope("store")
    tl.store(c + rows[:, None] * N + columns[None, :], sums.to(tl.float16))
    pl.exit_scope("store")


@triton.jit
def descriptor_matmul(c, a, b, K, TILE: tl.constexpr, TILE_K: tl.constexpr):  # type: ignore[no-untyped-def]
    """Multiply matrices with tiles loaded by the tensor memory accelerator."""
    row, column = tl.program_id(0) * TILE, tl.program_id(1) * TILE
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    pl.enter_scope("product")
    for start in range(0, K, TILE_K):
        sums = tl.dot(a.load([row, start]), b.load([start, column]), sums)
    pl.exit_scope("product")
    pl.enter_scope("store")
    c.store([row, column], sums.to(tl.float16))
    pl.exit_scope("store")

"""Kernels with scopes that stand in their source, elementwise and by rows."""

# Kernels take their arguments by position, and constants in Triton's capitals.
# ruff: noqa: N803, PLR0913, PLR0917
from __future__ import annotations

import triton
import triton.language as tl

from benchmarks.instrumentation.language import pl


@triton.jit
def short(out, x, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Copy: over in a few microseconds."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pl.enter_scope("copy")
    tl.store(out + at, tl.load(x + at))
    pl.exit_scope("copy")


@triton.jit
def scoped_matmul(c, a, b, N, K, TILE: tl.constexpr, TILE_K: tl.constexpr):  # type: ignore[no-untyped-def]
    """Multiply matrices, with three scopes, two of them in the loop."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, TILE_K)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, TILE_K):
        pl.enter_scope("load")
        left = tl.load(a + rows[:, None] * K + start + inner[None, :])
        right = tl.load(b + (start + inner[:, None]) * N + columns[None, :])
        pl.exit_scope("load")
        pl.enter_scope("dot")
        sums = tl.dot(left, right, sums)
        pl.exit_scope("dot")
    pl.enter_scope("store")
    tl.store(c + rows[:, None] * N + columns[None, :], sums.to(tl.float16))
    pl.exit_scope("store")


@triton.jit
def dropout(out, x, size, chance, seed, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Drop elements at random and scale the others."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    pl.enter_scope("load")
    values = tl.load(x + at, mask=inside)
    pl.exit_scope("load")
    pl.enter_scope("draw")
    kept = tl.rand(seed, at) > chance
    values = tl.where(kept, values / (1 - chance), 0.0)
    pl.exit_scope("draw")
    pl.enter_scope("store")
    tl.store(out + at, values, mask=inside)
    pl.exit_scope("store")


@triton.jit
def swiglu(out, x, columns, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Gate one half of a row by the other."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < columns
    pl.enter_scope("load")
    gate = tl.load(x + row * 2 * columns + at, mask=inside).to(tl.float32)
    value = tl.load(x + row * 2 * columns + columns + at, mask=inside).to(tl.float32)
    pl.exit_scope("load")
    pl.enter_scope("gate")
    result = gate * tl.sigmoid(gate) * value
    pl.exit_scope("gate")
    pl.enter_scope("store")
    tl.store(out + row * columns + at, result.to(out.dtype.element_ty), mask=inside)
    pl.exit_scope("store")


@triton.jit
def top_k(values_out, places_out, x, columns, COUNT: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Find the largest elements of a row, one after the other."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    pl.enter_scope("load")
    left = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    pl.exit_scope("load")
    pl.enter_scope("select")
    for number in range(COUNT):
        most = tl.max(left, axis=0)
        place = tl.argmax(left, axis=0)
        tl.store(values_out + row * COUNT + number, most)
        tl.store(places_out + row * COUNT + number, place)
        left = tl.where(at == place, -float("inf"), left)
    pl.exit_scope("select")

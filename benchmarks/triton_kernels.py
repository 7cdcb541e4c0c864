"""Triton kernels that spend their time in a loop, which can run a known part longer.

The number of iterations comes at run time, so that no compiler unrolls the loop in another way for
another number. ``EXTRA``, the iterations that are added, is part of the compiled code: a slowed
kernel is another binary of the same name, as after a change of its source.
"""

# Kernels take their arguments by position, and constants in Triton's capitals.
# ruff: noqa: N803, PLR0913, PLR0917
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, inner, columns, steps, EXTRA: tl.constexpr, TILE: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
    """Multiply: a tile of ``c`` for each program, ``K`` of the inner size in each iteration."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = tl.arange(0, K)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(steps + EXTRA):
        at = k * K + inside
        left = tl.load(a + rows[:, None] * inner + at[None, :])
        right = tl.load(b + at[:, None] * columns + cols[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * columns + cols[None, :], total.to(tl.float16))


@triton.jit
def softmax(x, y, steps, EXTRA: tl.constexpr, WIDTH: tl.constexpr):  # type: ignore[no-untyped-def]
    """Normalise one row in each iteration."""
    inside = tl.arange(0, WIDTH)
    for step in range(steps + EXTRA):
        at = (step * tl.num_programs(0) + tl.program_id(0)) * WIDTH + inside
        row = tl.load(x + at)
        grown = tl.exp(row - tl.max(row, axis=0))
        tl.store(y + at, grown / tl.sum(grown, axis=0))


@triton.jit
def layer_norm(x, y, weight, bias, steps, EXTRA: tl.constexpr, WIDTH: tl.constexpr):  # type: ignore[no-untyped-def]
    """Normalise one row in each iteration, with weights."""
    inside = tl.arange(0, WIDTH)
    scale = tl.load(weight + inside)
    shift = tl.load(bias + inside)
    for step in range(steps + EXTRA):
        at = (step * tl.num_programs(0) + tl.program_id(0)) * WIDTH + inside
        row = tl.load(x + at)
        centred = row - tl.sum(row, axis=0) / WIDTH
        variance = tl.sum(centred * centred, axis=0) / WIDTH
        tl.store(y + at, centred * tl.rsqrt(variance + 1e-5) * scale + shift)


@triton.jit
def attend(
    q, k, v, out, length, steps, EXTRA: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr
):  # type: ignore[no-untyped-def]
    """Attend to one tile of keys in each iteration, with the softmax of flash attention."""
    head = tl.program_id(1) * length * DEPTH
    queries = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = tl.arange(0, TILE)
    deep = tl.arange(0, DEPTH)
    query = tl.load(q + head + queries[:, None] * DEPTH + deep[None, :])
    most = tl.full((TILE,), -1.0e30, dtype=tl.float32)
    weight = tl.zeros((TILE,), dtype=tl.float32)
    total = tl.zeros((TILE, DEPTH), dtype=tl.float32)
    for step in range(steps + EXTRA):
        keys = step * TILE + inside
        key = tl.load(k + head + keys[None, :] * DEPTH + deep[:, None])
        scores = tl.dot(query, key)
        larger = tl.maximum(most, tl.max(scores, axis=1))
        shares = tl.exp(scores - larger[:, None])
        faded = tl.exp(most - larger)
        weight = weight * faded + tl.sum(shares, axis=1)
        value = tl.load(v + head + keys[:, None] * DEPTH + deep[None, :])
        total = tl.dot(shares.to(tl.float16), value, total * faded[:, None])
        most = larger
    found = total / weight[:, None]
    tl.store(out + head + queries[:, None] * DEPTH + deep[None, :], found.to(tl.float16))


@triton.jit
def chain(x, y, steps, EXTRA: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Apply a function to each element over and over: small, and each step waits for the last."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    for _ in range(steps + EXTRA):
        value = tl.exp(value * -0.5) + 0.25
    tl.store(y + at, value)


@triton.jit
def reduce(x, y, steps, EXTRA: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sum one block in each iteration, in few programs."""
    inside = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in range(steps + EXTRA):
        total += tl.load(x + (step * tl.num_programs(0) + tl.program_id(0)) * BLOCK + inside)
    tl.store(y + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def copy(x, y, steps, EXTRA: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Copy one block in each iteration."""
    inside = tl.arange(0, BLOCK)
    for step in range(steps + EXTRA):
        at = (step * tl.num_programs(0) + tl.program_id(0)) * BLOCK + inside
        tl.store(y + at, tl.load(x + at))


@triton.jit
def fma(x, y, clocks, steps, EXTRA: tl.constexpr, BLOCK: tl.constexpr, CLOCKED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Multiply and add in registers; ``clocks`` gets cycles and ns of each program.

    Readings of the clocks take a value that is ready only then, so that no compiler moves them.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    if CLOCKED:
        begin = tl.inline_asm_elementwise(
            "mov.u64 $0, %clock64; // $1", "=l,f", [value], dtype=tl.int64, is_pure=False, pack=1
        )
        began = tl.inline_asm_elementwise(
            "mov.u64 $0, %globaltimer; // $1",
            "=l,f",
            [value],
            dtype=tl.int64,
            is_pure=False,
            pack=1,
        )
        value += (begin + began).to(tl.float32) * 1.0e-30
    for _ in range(steps + EXTRA):
        value = value * 0.999 + 0.001
        value = value * 1.001 - 0.001
        value = value * 0.998 + 0.002
        value = value * 1.002 - 0.002
    if CLOCKED:
        end = tl.inline_asm_elementwise(
            "mov.u64 $0, %clock64; // $1", "=l,f", [value], dtype=tl.int64, is_pure=False, pack=1
        )
        ended = tl.inline_asm_elementwise(
            "mov.u64 $0, %globaltimer; // $1",
            "=l,f",
            [value],
            dtype=tl.int64,
            is_pure=False,
            pack=1,
        )
        tl.store(clocks + 2 * tl.program_id(0), tl.max(end - begin, axis=0))
        tl.store(clocks + 2 * tl.program_id(0) + 1, tl.max(ended - began, axis=0))
    tl.store(y + at, value)

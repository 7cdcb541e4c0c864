"""The Triton kernels of the study. Each keeps one unit busy, or waits for one thing."""

# ruff: noqa: N803, PLR0917 - constants of Triton are in capitals, and kernels have many arguments

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def fill(out, size, WIDTH: tl.constexpr):
    """Write each value once: DRAM."""
    places = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    tl.store(out + places, places.to(tl.float32), mask=places < size)


@triton.jit
def total(values, out, size, WIDTH: tl.constexpr):
    """Read each value once: DRAM."""
    places = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    found = tl.load(values + places, mask=places < size, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(found))


@triton.jit
def row_softmax(values, out, WIDTH: tl.constexpr):
    """Softmax of one row per program: read once, written once."""
    places = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    found = tl.load(values + places)
    grown = tl.exp(found - tl.max(found))
    tl.store(out + places, grown / tl.sum(grown))


@triton.jit
def strided(values, out, STRIDE: tl.constexpr, WIDTH: tl.constexpr):
    """Read one value of each line: most of what memory moves is not used."""
    numbers = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    found = tl.load(values + numbers * STRIDE)
    tl.store(out + tl.program_id(0), tl.sum(found))


@triton.jit
def gather(values, order, out, WIDTH: tl.constexpr):
    """Read values in a random order."""
    places = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    found = tl.load(values + tl.load(order + places))
    tl.store(out + tl.program_id(0), tl.sum(found))


@triton.jit
def shared_memory(out, rounds, STRIDE: tl.constexpr):
    """Load shared memory: STRIDE 4 without conflicts, 128 with 32 lanes in one bank."""
    found = tl.arange(0, 256)
    for _ in range(rounds):
        found = tl.inline_asm_elementwise(
            """
            {
            .shared .align 16 .b8 words[16384];
            .reg .u32 lane, place, base, a, b, c, d;
            mov.u32 lane, %laneid;
            mad.lo.u32 place, lane, """
            + STRIDE
            + """, $1;
            and.b32 place, place, 8188;
            mov.u32 base, words;
            add.u32 place, place, base;
            ld.volatile.shared.u32 a, [place];
            ld.volatile.shared.u32 b, [place+128];
            ld.volatile.shared.u32 c, [place+256];
            ld.volatile.shared.u32 d, [place+384];
            and.b32 a, a, 0;
            and.b32 b, b, 0;
            and.b32 c, c, 0;
            and.b32 d, d, 0;
            add.u32 a, a, b;
            add.u32 c, c, d;
            add.u32 a, a, c;
            mov.u32 $0, a;
            }
            """,
            "=r,r",
            [found],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )
    tl.store(out + tl.program_id(0) * 256 + tl.arange(0, 256), found)


@triton.jit
def product(left, right, out, SIZE: tl.constexpr, TILE: tl.constexpr, DEEP: tl.constexpr):
    """Multiply square matrices of fp16 with the tensor units."""
    row = tl.program_id(0) // (SIZE // TILE) * TILE + tl.arange(0, TILE)
    column = tl.program_id(0) % (SIZE // TILE) * TILE + tl.arange(0, TILE)
    deep = tl.arange(0, DEEP)
    sums = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, SIZE, DEEP):
        a = tl.load(left + row[:, None] * SIZE + start + deep[None, :])
        b = tl.load(right + (start + deep[:, None]) * SIZE + column[None, :])
        sums = tl.dot(a, b, sums)
    tl.store(out + row[:, None] * SIZE + column[None, :], sums.to(tl.float16))


@triton.jit
def issue(out, rounds, WIDTH: tl.constexpr):
    """Three FMAs to two integer operations: neither pipe is full, all issue slots are taken."""
    places = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    start = tl.load(out + places)
    number, other = start, start ^ 0x5BD1E995
    first, second, third = start * 0.5, start * 0.25, start * 0.125
    for _ in range(rounds):
        for _ in tl.static_range(8):
            number = (number + other) ^ start
            first = first * 1.0001 + 0.5
            second = second * 0.9999 + 0.25
            third = third * 1.0002 + 0.125
    tl.store(out + places, number + (first + second + third).to(tl.int32))


@triton.jit
def dependent(out, factor, rounds):
    """One warp per program with one chain: each FMA waits for the one before."""
    places = tl.program_id(0) * 32 + tl.arange(0, 32)
    values = tl.load(out + places)
    for _ in range(rounds):
        for _ in tl.static_range(16):
            values = values * factor + factor
    tl.store(out + places, values)


@triton.jit
def chase(following, out, rounds):
    """Each load says where the next one goes."""
    place = tl.program_id(0).to(tl.int64) * 4099
    for _ in range(rounds):
        place = tl.load(following + place)
    tl.store(out + tl.program_id(0), place)


@triton.jit
def barriers(out, rounds):
    """1024 threads wait for each other; one warp of them comes later."""
    found = tl.arange(0, 1024)
    for _ in range(rounds):
        found = tl.inline_asm_elementwise(
            """
            {
            .reg .pred late;
            .reg .u32 thread, n, x;
            mov.u32 thread, %tid.x;
            mov.u32 x, $1;
            setp.ge.u32 late, thread, 32;
            @late bra MET;
            mov.u32 n, 0;
            WORK:
            mad.lo.u32 x, x, 3, 1;
            add.u32 n, n, 1;
            setp.lt.u32 late, n, 64;
            @late bra WORK;
            MET:
            bar.sync 0;
            mov.u32 $0, x;
            }
            """,
            "=r,r",
            [found],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )
    tl.store(out + tl.program_id(0) * 1024 + tl.arange(0, 1024), found)


@triton.jit
def atomics(out, rounds):
    """All programs add to one value."""
    for _ in range(rounds):
        tl.atomic_add(out + tl.zeros((128,), tl.int32), tl.full((128,), 1, tl.int32))


@triton.jit
def uneven(out, factor, rounds, WIDTH: tl.constexpr):
    """The first program has twenty times as much to do as the others."""
    places = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    values = tl.load(out + places)
    own = tl.where(tl.program_id(0) == 0, 20 * rounds, rounds)
    for _ in range(own):
        for _ in tl.static_range(16):
            values = values * factor + factor
    tl.store(out + places, values)


@triton.jit
def spills(values, out, rounds, WIDTH: tl.constexpr):
    """One warp holds more values than it has registers for."""
    places = tl.arange(0, WIDTH)
    start = tl.program_id(0).to(tl.int64) * WIDTH
    first, second = tl.load(values + start + places), tl.load(values + places)
    for _ in range(rounds):
        first, second = first * 1.0001 + second, second * 0.9999 + first
    tl.store(out + start + places, first + second)


@triton.jit
def column_read(values, out, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Sum columns of a row-major matrix: neighbouring lanes read from different rows."""
    found = tl.zeros((256,), tl.float32)
    for start in range(0, ROWS, 256):
        rows = start + tl.arange(0, 256).to(tl.int64)
        found += tl.load(values + rows * WIDTH + tl.program_id(0))
    tl.store(out + tl.program_id(0), tl.sum(found))


@triton.jit
def column_write(out, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Write columns of a row-major matrix."""
    for start in range(0, ROWS, 256):
        rows = start + tl.arange(0, 256).to(tl.int64)
        tl.store(out + rows * WIDTH + tl.program_id(0), rows.to(tl.float32))


@triton.jit
def scatter(order, out, WIDTH: tl.constexpr):
    """Write values in a random order."""
    places = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    tl.store(out + tl.load(order + places), places.to(tl.float32))


@triton.jit
def one_atomic(out, rounds):
    """One lane of each program adds to one value."""
    for _ in range(rounds):
        tl.atomic_add(out, 1)


@triton.jit
def histogram(order, out, BINS: tl.constexpr, WIDTH: tl.constexpr):
    """Count values in a few bins of global memory."""
    places = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    tl.atomic_add(out + tl.load(order + places) % BINS, 1)


@triton.jit
def exponents(out, rounds, WIDTH: tl.constexpr):
    """Chains of exp2: the pipe of special functions."""
    places = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    values = tl.load(out + places)
    for _ in range(rounds):
        for _ in tl.static_range(8):
            values = tl.exp2(values)
    tl.store(out + places, values)


@triton.jit
def roots(out, rounds, WIDTH: tl.constexpr):
    """Reciprocal square roots with one FMA each."""
    places = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    values = tl.load(out + places)
    for _ in range(rounds):
        for _ in tl.static_range(8):
            values = tl.rsqrt(values) + 1.5
    tl.store(out + places, values)


@triton.jit
def integers(out, rounds, WIDTH: tl.constexpr):
    """Chains of integer operations."""
    places = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    start = tl.load(out + places)
    first, second = start, start + 1
    for _ in range(rounds):
        for _ in tl.static_range(8):
            first = (first ^ start) & (second | 0x55)
            second = (second ^ first) | (start & 0x77)
    tl.store(out + places, first + second)


@triton.jit
def strided_cache(values, out, rounds, STRIDE: tl.constexpr, WIDTH: tl.constexpr):
    """Read one value of each line again and again, from the first cache."""
    places = tl.arange(0, WIDTH) * STRIDE
    found = tl.zeros((WIDTH,), tl.float32)
    for number in range(rounds):
        found += tl.load(values + places + (number & 31), cache_modifier=".ca")
    tl.store(out + tl.program_id(0), tl.sum(found))


@triton.jit
def field_sum(records, out, FIELDS: tl.constexpr, WIDTH: tl.constexpr):
    """Read one field of records that lie one after the other."""
    places = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(records + places * FIELDS)))


@triton.jit
def column_softmax(values, out, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Softmax down each column of a row-major matrix, a program per column."""
    places = tl.arange(0, ROWS).to(tl.int64) * WIDTH + tl.program_id(0)
    found = tl.load(values + places)
    grown = tl.exp(found - tl.max(found))
    tl.store(out + places, grown / tl.sum(grown))


@triton.jit
def sigmoids(out, rounds, WIDTH: tl.constexpr):
    """An exponential and a reciprocal, with the arithmetic around them."""
    places = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    values = tl.load(out + places)
    for _ in range(rounds):
        for _ in tl.static_range(4):
            values = tl.sigmoid(values)
    tl.store(out + places, values)


@triton.jit
def reductions(out, rounds):
    """Sums of a block, one after the other: shuffles, which the pipe of shared memory does."""
    places = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    values = tl.load(out + places)
    for _ in range(rounds):
        values = values * 0.5 + tl.sum(values) * 0.0001
    tl.store(out + places, values)


@triton.jit
def meetings(out, factor, rounds):
    """All warps of a block meet at a barrier after each step of a chain."""
    places = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    values = tl.load(out + places)
    for _ in range(rounds):
        values = values * factor + factor
        tl.debug_barrier()
    tl.store(out + places, values)


@triton.jit
def ragged_rows(values, starts, out, WIDTH: tl.constexpr):
    """Sum rows of different lengths, a program per row."""
    begin, end = tl.load(starts + tl.program_id(0)), tl.load(starts + tl.program_id(0) + 1)
    found = tl.zeros((WIDTH,), tl.float32)
    for place in range(begin, end, WIDTH):
        places = place + tl.arange(0, WIDTH)
        found += tl.load(values + places, mask=places < end, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(found))

"""The Triton kernels of the calibration; imported only where Triton is."""

from __future__ import annotations

import triton  # noqa: TID253 - only `calibration_program` imports this file
import triton.language as tl  # noqa: TID253

WIDTH = tl.constexpr(1024)  # values of a program


@triton.jit
def fma_chains(out, factor, rounds):  # type: ignore[no-untyped-def]
    """Run ``rounds`` times 16 dependent FMAs on each of 1024 values, in registers.

    Args:
        out: Where the results go, 1024 values per program.
        factor: Both factor and start.
        rounds: How many rounds.
    """
    places = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    values = tl.load(out + places)
    scale = factor.to(values.dtype)
    for _ in range(rounds):
        for _ in tl.static_range(16):
            values = values * scale + scale
    tl.store(out + places, values)


@triton.jit  # type: ignore[untyped-decorator]
def reread(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    values,
    out,
    rounds,
    SIZE: tl.constexpr,  # noqa: N803
    STEP: tl.constexpr,  # noqa: N803
    CACHE: tl.constexpr,  # noqa: N803
):
    """Read the same values again and again, past the first cache (.cg) or from it (.ca).

    Args:
        values: At least SIZE + 8 STEP + 1024 of them.
        out: A sum for each program.
        rounds: How often each program reads eight times 1024 values.
        SIZE: How many values the reads begin in, a power of two.
        STEP: Distance of two reads in values, a multiple of 32.
        CACHE: The modifier of the loads.
    """
    places = tl.arange(0, WIDTH)
    start = tl.program_id(0) * 8 * STEP
    found = tl.zeros((WIDTH,), tl.float32)
    for _ in range(rounds):
        start = tl.multiple_of((start + 8 * STEP) & (SIZE - 1), 32)
        # Eight loads of 16 bytes a lane are on their way at a time, of other addresses each.
        for number in tl.static_range(8):
            found += tl.load(values + start + number * STEP + places, cache_modifier=CACHE)
    tl.store(out + tl.program_id(0), tl.sum(found))

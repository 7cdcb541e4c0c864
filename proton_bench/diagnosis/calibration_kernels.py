"""The Triton kernels of the calibration; imported only where Triton is."""

from __future__ import annotations

import triton  # noqa: TID253 - only `calibration_program` imports this file
import triton.language as tl  # noqa: TID253

__all__ = ["fma_chains"]

_WIDTH = tl.constexpr(1024)


@triton.jit
def fma_chains(out, factor, rounds):  # type: ignore[no-untyped-def]
    """Run ``rounds`` times 16 dependent FMAs on each of 1024 values, in registers.

    Args:
        out: Where the results go, 1024 values per program.
        factor: Both factor and start.
        rounds: How many rounds.
    """
    places = tl.program_id(0) * _WIDTH + tl.arange(0, _WIDTH)
    values = tl.load(out + places)
    scale = factor.to(values.dtype)
    for _ in range(rounds):
        for _ in tl.static_range(16):
            values = values * scale + scale
    tl.store(out + places, values)

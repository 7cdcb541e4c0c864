"""A kernel that takes a known number of cycles: multiply-adds that wait for one another."""
# Kernels take their arguments by position, and constants in Triton's capitals.
# ruff: noqa: N803, PLR0917

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

import proton_bench.language as pl

pl.enable_semantic("triton")

# Latency of one multiply-add of float32 on NVIDIA GPUs since Volta.
CYCLES_PER_STEP = 4
PROGRAMS = 4
# value = value * 0.5 + 1, which comes ever closer to 2
_STEP = "fma.rn.f32 $0, {source}, 0f3F000000, 0f3F800000;"


@triton.jit
def known_chain(out, x, passes, STEPS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Multiply and add the previous result, in one warp with one value per lane."""
    lanes = tl.program_id(0) * 32 + tl.arange(0, 32)
    value = tl.load(x + lanes)
    # What was loaded must have arrived before the scope begins.
    value = tl.inline_asm_elementwise(
        "add.rn.f32 $0, $1, 0f3F800000;", "=f,f", [value], dtype=tl.float32, is_pure=False, pack=1
    )
    pl.enter_scope("chain")
    for _ in range(passes):
        value = tl.inline_asm_elementwise(
            STEPS, "=f,f", [value], dtype=tl.float32, is_pure=False, pack=1
        )
    pl.exit_scope("chain")
    tl.store(out + lanes, value)


# Enough to make the loop's branch negligible, and few enough for the instruction cache.
PER_PASS = 512
STEPS = "\n".join([_STEP.format(source="$1"), *[_STEP.format(source="$0")] * (PER_PASS - 1)])


def chain_of(length: int) -> tuple[Any, Any]:
    """Launch a chain in four programs of one warp; return its result and the expected one.

    Args:
        length: Number of multiply-adds, a multiple of ``PER_PASS``.
    """
    x = torch.randn(PROGRAMS * 32).cuda()
    out = torch.empty_like(x)
    known_chain[(PROGRAMS,)](out, x, length // PER_PASS, STEPS=STEPS, num_warps=1)
    return out, (x.double() - 1).mul(0.5**length).add(2).float()

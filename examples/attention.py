"""Fused attention: the scores of a tile never leave the chip, softmax is kept up online.

proton examples/attention.py
proton pytest examples/test_attention.py
"""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

import math

from device import DEVICE, pick  # before triton: switches its interpreter on without a GPU

# isort: split
import torch
import triton
import triton.language as tl

import proton_bench as proton

__all__ = ["attention", "main"]

BLOCK_M, BLOCK_N = pick(full=(128, 64), small=(32, 32))


def attention_metadata(grid, metadata, args):
    """Describe one launch: two products per tile of scores, half of them when causal."""
    programs, length, width = args["heads"], args["length"], args["WIDTH"]
    size_bytes = args["q"].element_size()
    flops = 4.0 * programs * length * length * width * (0.5 if args["CAUSAL"] else 1.0)
    return {
        "name": f"attention_{'causal' if args['CAUSAL'] else 'full'}_{length}",
        f"flops{size_bytes * 8}": flops,
        "bytes": 4 * programs * length * width * size_bytes,
    }


@triton.jit(launch_metadata=attention_metadata)
def attention_kernel(
    out,
    q,
    k,
    v,
    heads,
    length,
    scale,
    WIDTH: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # q, k, v and out are contiguous [heads, length, WIDTH]; batch and heads are one dimension.
    head = tl.program_id(1).to(tl.int64) * length * WIDTH
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    lanes = tl.arange(0, WIDTH)
    queries = head + rows[:, None] * WIDTH + lanes[None, :]
    q_tile = tl.load(q + queries, rows[:, None] < length, 0.0)
    highest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    sums = tl.zeros((BLOCK_M, WIDTH), dtype=tl.float32)
    end = length
    if CAUSAL:
        end = min((tl.program_id(0) + 1) * BLOCK_M, length)
    for start in range(0, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        keys = head + columns[:, None] * WIDTH + lanes[None, :]
        k_tile = tl.load(k + keys, columns[:, None] < length, 0.0)
        v_tile = tl.load(v + keys, columns[:, None] < length, 0.0)
        scores = tl.dot(q_tile, tl.trans(k_tile)) * scale
        visible = columns[None, :] < length
        if CAUSAL:
            visible = visible & (columns[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_highest[:, None])
        correction = tl.exp(highest - new_highest)
        total = total * correction + tl.sum(weights, axis=1)
        sums = sums * correction[:, None]
        sums = tl.dot(weights.to(v_tile.dtype), v_tile, sums)
        highest = new_highest
    result = sums / total[:, None]
    tl.store(out + queries, result.to(out.dtype.element_ty), rows[:, None] < length)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool) -> torch.Tensor:
    """Return ``softmax(q k^T / sqrt(width)) v``.

    Args:
        q: Queries [batch, heads, length, width], contiguous; width is a power of two >= 16.
        k: Keys, same shape.
        v: Values, same shape.
        causal: Let a position see only itself and what came before.
    """
    batch, heads, length, width = q.shape
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(length, BLOCK_M), batch * heads)](
        out,
        q,
        k,
        v,
        batch * heads,
        length,
        1.0 / math.sqrt(width),
        WIDTH=width,
        CAUSAL=causal,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
    )
    return out


def main() -> None:
    """Profile causal and full attention and check both against torch."""
    session = proton.start("attention", hook="triton")
    shape = pick(full=(4, 16, 2048, 64), small=(1, 2, 64, 32))
    q, k, v = (torch.randn(shape, device=DEVICE, dtype=torch.float16) for _ in range(3))
    for causal in (False, True):
        with proton.scope("causal" if causal else "full"):
            with proton.scope("triton"):
                ours = attention(q, k, v, causal=causal)
            with proton.scope("torch"):
                reference = torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=causal
                )
            torch.testing.assert_close(ours, reference, rtol=1e-2, atol=1e-2)
    proton.finalize(session)
    print("attention: full and causal agree with torch")


if __name__ == "__main__":
    main()

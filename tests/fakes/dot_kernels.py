# ruff: noqa: N803, T201
"""Kernels with dots; run, it prints what Triton makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import triton
import triton.language as tl

# Constants of each kernel; its other arguments are pointers (lower case) and integers (upper case).
CONSTANTS: dict[str, dict[str, int]] = {
    "matmul": {"BM": 32, "BN": 64, "BK": 16},
    "batched": {"BM": 16, "BN": 16, "BK": 32},
    "split_k": {"BM": 16, "BN": 16, "BK": 16, "SPLIT": 4},
    "persistent": {"BM": 16, "BN": 16, "BK": 16, "PROGRAMS": 3},
    "attention": {"BM": 32, "BN": 16, "D": 64},
    "causal_attention": {"BM": 32, "BN": 16, "D": 64},
    "eights": {"BM": 16, "BN": 16, "BK": 32},
    "mixed": {"BM": 16},
    "branch": {"BM": 16},
    "cubes": {"BM": 16},
    "scaled": {"BM": 128},
    "while_loop": {"BM": 16},
    "no_dots": {"BM": 16},
}
KINDS: Mapping[str, Mapping[str, str]] = {
    "eights": {"a": "*fp8e5", "b": "*fp8e5", "c": "*fp32"},
    "mixed": {"a": "*fp16", "b": "*fp32", "c": "*fp32"},
    "scaled": {"a": "*u8", "b": "*u8", "scales": "*u8", "c": "*fp32"},
}


@triton.jit
def _tile(pointer, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    across = (columns + tl.arange(0, COLUMNS))[None, :]
    return pointer + (rows + tl.arange(0, ROWS))[:, None] * COLUMNS + across


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(tl.load(_tile(a, m, k, BM, BK)), tl.load(_tile(b, k, n, BK, BN)), total)
    tl.store(_tile(c, m, n, BM, BN), total)


@triton.jit
def batched(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    a += batch * M * K
    b += batch * K * N
    c += batch * M * N
    matmul(a, b, c, M, N, K, BM, BN, BK)


@triton.jit
def split_k(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr
):
    m, part = tl.program_id(0) * BM, tl.program_id(1)
    total = tl.zeros((BM, BN), tl.float32)
    for each in range(tl.cdiv(K, BK * SPLIT)):
        k = (each * SPLIT + part) * BK
        total += tl.dot(tl.load(_tile(a, m, k, BM, BK)), tl.load(_tile(b, k, 0, BK, BN)))
    tl.atomic_add(_tile(c, m, 0, BM, BN), total)


@triton.jit
def persistent(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr
):
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        m, n = tile // across * BM, tile % across * BN
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(tl.load(_tile(a, m, k, BM, BK)), tl.load(_tile(b, k, n, BK, BN)), total)
        tl.store(_tile(c, m, n, BM, BN), total)


@triton.jit
def _attend(q, k, v, o, first, end, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    m = tl.program_id(0) * BM
    query = tl.load(_tile(q, m, 0, BM, D))
    total, largest = tl.zeros((BM, D), tl.float32), tl.full((BM,), -1e9, tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    for n in range(first, end, BN):
        scores = tl.dot(query, tl.trans(tl.load(_tile(k, n, 0, BN, D))))
        newest = tl.maximum(largest, tl.max(scores, 1))
        scores = tl.exp(scores - newest[:, None])
        shrink = tl.exp(largest - newest)
        weight = weight * shrink + tl.sum(scores, 1)
        total = total * shrink[:, None]
        total = tl.dot(scores.to(query.dtype), tl.load(_tile(v, n, 0, BN, D)), total)
        largest = newest
    tl.store(_tile(o, m, 0, BM, D), total / weight[:, None])


@triton.jit
def attention(q, k, v, o, N, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    _attend(q, k, v, o, 0, N, BM, BN, D)


@triton.jit
def causal_attention(q, k, v, o, N, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    _attend(q, k, v, o, 0, tl.minimum((tl.program_id(0) + 1) * BM, N), BM, BN, D)


@triton.jit
def eights(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    matmul(a, b, c, BM, BN, K, BM, BN, BK)


@triton.jit
def mixed(a, b, c, BM: tl.constexpr):
    half, single = tl.load(_tile(a, 0, 0, BM, BM)), tl.load(_tile(b, 0, 0, BM, BM))
    total = tl.dot(half, half)
    total += tl.dot(single, single, allow_tf32=False)
    total += tl.dot(single, single)
    tl.store(_tile(c, 0, 0, BM, BM), total)


@triton.jit
def branch(a, b, c, N, BM: tl.constexpr):
    total = tl.load(_tile(a, 0, 0, BM, BM))
    if tl.program_id(0) < N:
        total = tl.dot(total, tl.load(_tile(b, 0, 0, BM, BM))).to(total.dtype)
    tl.store(_tile(c, 0, 0, BM, BM), total)


@triton.jit
def cubes(a, b, c, BM: tl.constexpr):
    square = tl.load(_tile(a, 0, 0, BM, BM))
    cube = tl.broadcast_to(square[None, :, :], (4, BM, BM))
    total = tl.dot(cube, cube)
    tl.store(_tile(c, 0, 0, BM, BM), tl.sum(total, 0))


@triton.jit
def scaled(a, b, scales, c, BM: tl.constexpr):
    left, right = tl.load(_tile(a, 0, 0, BM, 64)), tl.load(_tile(b, 0, 0, 64, BM))
    scale = tl.load(_tile(scales, 0, 0, BM, 4))
    total = tl.dot_scaled(left, scale, "e2m1", right, scale, "e2m1")
    tl.store(_tile(c, 0, 0, BM, BM), total)


@triton.jit
def while_loop(a, b, c, N, BM: tl.constexpr):
    total = tl.zeros((BM, BM), tl.float32)
    left = N
    while left > 0:
        total += tl.dot(tl.load(_tile(a, left, 0, BM, BM)), tl.load(_tile(b, 0, left, BM, BM)))
        left = left // 2
    tl.store(_tile(c, 0, 0, BM, BM), total)


@triton.jit
def no_dots(a, c, BM: tl.constexpr):
    tl.store(_tile(c, 0, 0, BM, BM), tl.load(_tile(a, 0, 0, BM, BM)) * 2)


def _compiled(name: str, constants: Mapping[str, int]) -> dict[str, Any]:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = globals()[name]
    signature = {
        argument: "constexpr"
        if argument in constants
        else KINDS.get(name, {}).get(argument, "i32" if argument.isupper() else "*fp16")
        for argument in kernel.arg_names
    }
    source = ASTSource(kernel, signature=signature, constexprs=constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    return {"ttir": compiled.asm["ttir"], "signature": signature}


if __name__ == "__main__":
    print(json.dumps({name: _compiled(name, each) for name, each in CONSTANTS.items()}))

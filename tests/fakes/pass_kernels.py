"""Kernels that the tests of the passes compile without a GPU, one of each kind of program.

They are never launched. ``SOURCES`` has what Triton's compiler wants of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # noqa: N803
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=-float("inf"))
    weights = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + tl.program_id(0) * n + at, weights / tl.sum(weights, axis=0), mask=at < n)


@triton.jit
def layer_norm(x, y, w, b, n, BLOCK: tl.constexpr):  # noqa: N803
    x += tl.program_id(0) * n
    y += tl.program_id(0) * n
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        distance = tl.where(at < n, tl.load(x + at, mask=at < n, other=0.0) - mean, 0.0)
        squares += distance * distance
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + 1e-5)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < n
        value = (tl.load(x + at, mask=inside) - mean) * scale
        weighted = value * tl.load(w + at, mask=inside) + tl.load(b + at, mask=inside)
        tl.store(y + at, weighted, mask=inside)


@triton.jit
def attention(q, k, v, o, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):  # noqa: N803
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    queries = tl.load(q + rm[:, None] * D + rd[None, :])
    highest = tl.zeros((BM,), tl.float32) - float("inf")
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        rn = start + tl.arange(0, BN)
        scores = tl.dot(queries, tl.load(k + rn[None, :] * D + rd[:, None])) * scale
        new = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp(scores - new[:, None])
        decay = tl.exp(highest - new)
        total = total * decay + tl.sum(weights, 1)
        acc = acc * decay[:, None]
        acc = tl.dot(weights.to(tl.float16), tl.load(v + rn[:, None] * D + rd[None, :]), acc)
        highest = new
    tl.store(o + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def persistent_matmul(a, b, c, M, N, K, P, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # noqa: N803
    columns = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * columns, P):
        rm = (tile // columns) * BM + tl.arange(0, BM)
        rn = (tile % columns) * BN + tl.arange(0, BN)
        rk = tl.arange(0, BK)
        pa = a + rm[:, None] * K + rk[None, :]
        pb = b + rk[:, None] * N + rn[None, :]
        acc = tl.zeros((BM, BN), tl.float32)
        for _ in range(0, K, BK):
            acc = tl.dot(tl.load(pa), tl.load(pb), acc)
            pa += BK
            pb += BK * N
        tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


@triton.jit
def tma_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # noqa: N803
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(da.load([m, k]), db.load([k, n]), acc)
    dc.store([m, n], acc.to(tl.float16))


@triton.jit
def specialized_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # noqa: N803
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True, num_stages=2):
        acc = tl.dot(da.load([m, k]), db.load([k, n]), acc)
    dc.store([m, n], acc.to(tl.float16))


@triton.jit
def count_down(x, y, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    left = tl.load(y)
    total = tl.zeros((BLOCK,), tl.float32)
    while left > 0:
        if left % 2 == 0:
            total += tl.load(x + at + left)
        else:
            tl.debug_barrier()
        left -= 1
    tl.atomic_add(x + at, total)


@triton.jit
def doubled(x):
    return tl.load(x) * 2


@triton.jit
def calls_inlined(x, y, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    tl.store(y + at, doubled(x + at) + tl.load(y + at))


@triton.jit(noinline=True)
def doubled_apart(x):
    return tl.load(x) * 2


@triton.jit
def calls_noinline(x, y, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    tl.store(y + at, doubled_apart(x) + at)


@triton.jit
def no_memory(x):
    tl.device_assert(x > 0)


@triton.jit
def unrolled(x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(260):  # each a number: sums of so many blocks take Triton seconds
        total += tl.load(x + i)
    for _ in range(n):
        total += tl.load(y + at)
    tl.store(y + at, total)


@dataclass(frozen=True, slots=True)
class Source:
    """What Triton's compiler wants of a kernel."""

    kernel: Any
    pointers: Mapping[str, str]
    integers: tuple[str, ...] = ()
    constants: Mapping[str, int] = field(default_factory=dict)
    floats: tuple[str, ...] = ()

    def ast(self) -> Any:
        from triton.compiler import ASTSource

        signature = dict.fromkeys(self.constants, "constexpr")
        signature |= {name: f"*{kind}" for name, kind in self.pointers.items()}
        signature |= dict.fromkeys(self.integers, "i32") | dict.fromkeys(self.floats, "fp32")
        ordered = {name: signature[name] for name in self.kernel.arg_names}
        aligned = [["tt.divisibility", 16]]
        return ASTSource(
            fn=self.kernel,
            signature=ordered,
            constexprs=dict(self.constants),
            attrs={
                (place,): aligned
                for place, name in enumerate(ordered)
                if name in self.pointers or name in self.integers
            },
        )


_TILES = {"BM": 128, "BN": 128, "BK": 64}
_MATRICES = dict.fromkeys("abc", "fp16")

SOURCES = {
    "matmul": Source(matmul, _MATRICES, ("M", "N", "K"), _TILES),
    "softmax": Source(softmax, {"x": "fp32", "y": "fp32"}, ("n",), {"BLOCK": 1024}),
    "layer_norm": Source(
        layer_norm, dict.fromkeys(("x", "y", "w", "b"), "fp32"), ("n",), {"BLOCK": 1024}
    ),
    "attention": Source(
        attention,
        dict.fromkeys(("q", "k", "v", "o"), "fp16"),
        ("n",),
        {"BM": 128, "BN": 64, "D": 64},
        ("scale",),
    ),
    "persistent_matmul": Source(persistent_matmul, _MATRICES, ("M", "N", "K", "P"), _TILES),
    "tma_matmul": Source(tma_matmul, _MATRICES, ("M", "N", "K"), _TILES),
    "specialized_matmul": Source(specialized_matmul, _MATRICES, ("M", "N", "K"), _TILES),
    "count_down": Source(count_down, {"x": "fp32", "y": "i32"}, (), {"BLOCK": 256}),
    "calls_inlined": Source(calls_inlined, {"x": "fp32", "y": "fp32"}, (), {"BLOCK": 256}),
    "calls_noinline": Source(calls_noinline, {"x": "fp32", "y": "fp32"}, (), {"BLOCK": 256}),
    "unrolled": Source(unrolled, {"x": "fp32", "y": "fp32"}, ("n",), {"BLOCK": 128}),
    "no_memory": Source(no_memory, {}, ("x",)),
}

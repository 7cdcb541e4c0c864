"""Kernels with scopes in their source, which the tests compile without a GPU and never launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as ttgl

import proton_bench.language as pl


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    with pl.scope("loop"):
        for i in range(n):
            pl.enter_scope("load")
            total += tl.load(x + at + i * BLOCK)
            pl.exit_scope("load")
    tl.store(y + at, total)


@triton.jit
def plain_add(x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        total += tl.load(x + at + i * BLOCK)
    tl.store(y + at, total)


@triton.jit
def named(x, y, NAME: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    with pl.scope(NAME):
        tl.store(y + at, tl.load(x + at))


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # noqa: N803
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    with pl.scope("loop"):
        for _ in range(0, K, BK):
            acc = tl.dot(tl.load(pa), tl.load(pb), acc)
            pa += BK
            pb += BK * N
    with pl.scope("store"):
        tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


@triton.jit
def specialized(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # noqa: N803
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    with pl.scope("loop"):
        for k in tl.range(0, K, BK, warp_specialize=True, num_stages=2):
            acc = tl.dot(da.load([m, k]), db.load([k, n]), acc)
    dc.store([m, n], acc.to(tl.float16))


@gluon.jit
def gluon_copy(x, y, BLOCK: ttgl.constexpr, LANES: ttgl.constexpr):  # noqa: N803
    layout: ttgl.constexpr = ttgl.BlockedLayout([1], [LANES], [4], [0])
    at = ttgl.arange(0, BLOCK, layout=layout)
    with pl.scope("copy"):
        pl.enter_scope("load")
        values = ttgl.load(x + at)
        pl.exit_scope("load")
        ttgl.store(y + at, values)


@gluon.jit
def gluon_events(x, y, n, BLOCK: ttgl.constexpr, LANES: ttgl.constexpr):  # noqa: N803
    layout: ttgl.constexpr = ttgl.BlockedLayout([1], [LANES], [4], [0])
    at = ttgl.arange(0, BLOCK, layout=layout)
    event = pl.allocate_event("copy")
    for i in range(n):
        pl.start_event(event)
        values = ttgl.load(x + at + i)
        ttgl.store(y + at + i, values)
        pl.end_event(event)


@triton.jit
def tile(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # noqa: N803
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    with pl.scope("store"):
        tl.store(y + at, tl.load(x + at) * 2)


@triton.jit
def left_open(x, y, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    pl.enter_scope("load")
    tl.store(y + at, tl.load(x + at))


@triton.jit
def many(x, y, COUNT: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    for i in tl.static_range(COUNT):
        pl.enter_scope("s")
        tl.store(y + at, tl.load(x + at + i))
        pl.exit_scope("s")


@dataclass(frozen=True, slots=True)
class Source:
    """What Triton's compiler wants of a kernel."""

    kernel: Any
    pointers: Mapping[str, str]
    integers: tuple[str, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)

    def ast(self, warp_size: int, **constants: Any) -> Any:
        """Return the source for a target."""
        if isinstance(self.kernel, gluon._runtime.GluonJITFunction):
            from triton.experimental.gluon._runtime import GluonASTSource as ASTSource
        else:
            from triton.compiler import ASTSource
        fixed = {**self.constants, **constants}
        if "LANES" in self.kernel.arg_names:
            fixed["LANES"] = warp_size
        kinds = {name: f"*{kind}" for name, kind in self.pointers.items()}
        kinds |= dict.fromkeys(self.integers, "i32") | dict.fromkeys(fixed, "constexpr")
        signature = {name: kinds[name] for name in self.kernel.arg_names}
        attributes = {
            (place,): [["tt.divisibility", 16]]
            for place, name in enumerate(signature)
            if name in self.pointers or name in self.integers
        }
        return ASTSource(self.kernel, signature, fixed, attributes)


_PAIR = {"x": "fp32", "y": "fp32"}
_TILES = {"BM": 128, "BN": 128, "BK": 64}
_MATRICES = dict.fromkeys("abc", "fp16")
_SIZES = ("M", "N", "K")

SOURCES = {
    "add": Source(add, _PAIR, ("n",), {"BLOCK": 256}),
    "plain_add": Source(plain_add, _PAIR, ("n",), {"BLOCK": 256}),
    "named": Source(named, _PAIR, (), {"NAME": "copy", "BLOCK": 256}),
    "matmul": Source(matmul, _MATRICES, _SIZES, _TILES),
    "specialized": Source(specialized, _MATRICES, _SIZES, _TILES),
    "gluon_copy": Source(gluon_copy, _PAIR, (), {"BLOCK": 256}),
    "gluon_events": Source(gluon_events, _PAIR, ("n",), {"BLOCK": 256}),
    "tile": Source(tile, _PAIR, (), {"ROWS": 32, "COLUMNS": 64}),
    "left_open": Source(left_open, _PAIR, (), {"BLOCK": 256}),
    "many": Source(many, _PAIR, (), {"COUNT": 4, "BLOCK": 256}),
}

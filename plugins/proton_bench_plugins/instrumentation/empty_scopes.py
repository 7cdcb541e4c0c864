"""A kernel of empty scopes. Importing it imports Triton."""

from __future__ import annotations

import triton
import triton.language as tl

import proton_bench.language as pl

SCOPES = 32  # each is separate in the source, so that each has its own number


@triton.jit  # type: ignore[untyped-decorator]
def proton_bench_empty_scopes(count: tl.constexpr) -> None:
    """Open and close this many scopes."""
    for _ in tl.static_range(count):
        pl.enter_scope("empty")
        pl.exit_scope("empty")

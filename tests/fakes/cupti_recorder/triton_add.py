"""The one kernel of the workloads."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def add_kernel(x, y, out, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]  # noqa: N803
    """Write x + y to out."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    total = tl.load(x + offsets, mask) + tl.load(y + offsets, mask)
    tl.store(out + offsets, total, mask)

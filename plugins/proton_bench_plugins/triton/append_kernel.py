"""The kernel with which a graph writes values to host memory."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["size", "capacity"])  # type: ignore[untyped-decorator]
def append_values(  # type: ignore[no-untyped-def]  # noqa: PLR0917 - arguments of a kernel
    words, values, size, capacity, is_float: tl.constexpr, block: tl.constexpr
):
    """Append ``size`` values to a ring; see native/src/correlation/graph_launches.h for its words.

    It has one program. A full ring is not changed, except for the count.
    """
    count = tl.load(words)
    taken = tl.load(words + 1, volatile=True)  # the host writes it at any time
    has_room = count - taken < capacity
    entry = words + 2 + (count % capacity) * (size + 1)
    offsets = tl.arange(0, block)
    loaded = tl.load(values + offsets, mask=offsets < size)
    bits = loaded.to(tl.float64).to(tl.int64, bitcast=True) if is_float else loaded.to(tl.int64)
    tl.store(entry + 1 + offsets, bits, mask=(offsets < size) & has_room)
    tl.store(entry, count + 1, mask=has_room)
    tl.store(words, count + 1)

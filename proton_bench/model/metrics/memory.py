"""Columns of device memory: what the program's allocator gave out, by the path that asked for it.

All are sums over rows. `PEAK` of the root is what the allocator held at most: a device's moment of
that is its own.
"""

from __future__ import annotations

PEAK = "peak_bytes"  # held at the moment of the peak
ALLOCATED = "alloc_bytes"
FREED = "freed_bytes"  # of what the path allocated, wherever that was
KEPT = "kept_bytes"  # still held at the end
GROWN = "grown_bytes"  # held more than at the beginning, by paths that kept more in every step
FAILED = "oom_bytes"  # asked for and not found
# What is held at a moment does not add up over time.
AT_A_MOMENT = frozenset({PEAK, KEPT, FAILED})
# Of what no session listened to.
UNPLACED = "<allocated while not recorded>"

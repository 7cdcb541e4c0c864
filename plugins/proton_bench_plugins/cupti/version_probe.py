"""A program for ``proton doctor`` that opens one libcupti and prints what it is.

Several of them in one process would be several profilers, so each is opened in a separate process.
Reading the version starts nothing.
"""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["COUNTER_CALLS", "main"]

# A call of each way to read counters, by the way's name.
COUNTER_CALLS = {"sampling": "cuptiPmSamplingEnable", "ranges": "cuptiRangeProfilerEnable"}


def main(name: str) -> None:
    """Print "<version> <file>", and on the next line the ways to read counters that it has.

    Args:
        name: File, or name for the system to search.
    """
    library = ctypes.CDLL(name)
    version = ctypes.c_uint32()
    library.cuptiGetVersion(ctypes.byref(version))
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
        files = [line.split(maxsplit=5)[-1].strip() for line in lines]
    stem = os.path.basename(name)
    file = next((each for each in files if os.path.basename(each).startswith(stem)), name)
    sys.stdout.write(f"{version.value} {file if os.path.sep not in name else name}\n")
    ways = [way for way, call in COUNTER_CALLS.items() if hasattr(library, call)]
    sys.stdout.write(f"{' '.join(ways)}\n")
    sys.stdout.flush()
    os._exit(0)  # not every libcupti can be unloaded without a driver


if __name__ == "__main__":
    main(sys.argv[1])

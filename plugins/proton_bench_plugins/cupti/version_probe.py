"""A program for ``proton doctor`` that opens one libcupti and prints its version and file.

Several of them in one process would be several profilers, so each is opened in a separate process.
Reading the version starts nothing.
"""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["main"]


def main(name: str) -> None:
    """Print "<version> <file>" on one line.

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
    sys.stdout.flush()
    os._exit(0)  # not every libcupti can be unloaded without a driver


if __name__ == "__main__":
    main(sys.argv[1])

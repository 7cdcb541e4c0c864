"""The floor: a minimal subscriber of CUPTI (floor.cpp), compiled and driven from here."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "native" / "src"
_FLAGS = ("-std=c++20", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden")


def build(folder: Path) -> Path:
    """Compile the subscriber into ``folder`` and return its path.

    Raises:
        RuntimeError: There is no C++ compiler.
    """
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise RuntimeError("no C++ compiler was found for the floor; install g++, or set CXX")
    library = folder / "libfloor.so"
    command = [compiler, *_FLAGS, f"-I{SOURCES}", str(HERE / "floor.cpp")]
    subprocess.run([*command, "-o", str(library), "-ldl", "-lpthread"], check=True)
    return library


class Floor:
    """The subscriber in this process.

    Args:
        library: What ``build`` returned.
        cupti: Path of libcupti.
    """

    def __init__(self, library: str, cupti: str) -> None:
        self._library = ctypes.CDLL(library)
        self._library.floor_start.restype = ctypes.c_char_p
        self._library.floor_start.argtypes = [ctypes.c_char_p, ctypes.c_int]
        self._library.floor_stop.restype = ctypes.c_uint64
        self._cupti = cupti

    def start(self, *, whole_graphs: bool = False) -> None:
        """Begin to record.

        Raises:
            RuntimeError: A call of CUPTI failed.
        """
        failed = self._library.floor_start(self._cupti.encode(), int(whole_graphs))
        if failed is not None:
            raise RuntimeError(f"the floor did not start on {self._cupti}: {failed.decode()}")

    def stop(self) -> int:
        """Have all records delivered, and return their bytes."""
        return int(self._library.floor_stop())

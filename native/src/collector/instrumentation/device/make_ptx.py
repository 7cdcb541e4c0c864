"""Compiles reduce_records.cu to reduce_records.ptx; run it after a change of either's sources.

The result is portable: for compute capability 8.0, which every later one takes, and of the oldest
version of PTX that holds what it uses, so that drivers of CUDA 11 load it.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE.parents[2]
PTX = HERE / "reduce_records.ptx"
PTX_VERSION = "7.0"


def source_files() -> list[Path]:
    """Return the kernels' source and every header of ours that it includes, sorted."""
    found: set[Path] = set()
    waiting = [HERE / "reduce_records.cu"]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        text = file.read_text(encoding="utf-8")
        waiting += [SOURCES / name for name in re.findall(r'#include "([^"]+)"', text)]
    return sorted(found)


def digest() -> str:
    """Return what identifies the sources' code; comments and spaces do not count."""
    digest = hashlib.sha256()
    for file in source_files():
        code = re.sub(r"//.*", "", file.read_text(encoding="utf-8"))
        digest.update(re.sub(r"\s+", "", code).encode())
    return digest.hexdigest()


def portable(ptx: str) -> str:
    """Return the PTX of nvcc in the older version, without hints that are newer."""
    ptx = re.sub(r"^\.version .*$", f".version {PTX_VERSION}", ptx, flags=re.MULTILINE)
    ptx = re.sub(r'^\s*\.pragma "used_bytes_mask.*\n', "", ptx, flags=re.MULTILINE)
    return f"// Made by make_ptx.py of sources {digest()}\n" + ptx


def main() -> int:
    """Write the PTX with the compiler that is named, or nvcc; return the exit code."""
    nvcc = sys.argv[1] if len(sys.argv) > 1 else "nvcc"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.ptx"
        command = [nvcc, "-std=c++20", "-arch=sm_80", "--ptx", "--expt-relaxed-constexpr"]
        command += ["-I", str(SOURCES), str(HERE / "reduce_records.cu"), "-o", str(made)]
        subprocess.run(command, check=True)
        PTX.write_text(portable(made.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

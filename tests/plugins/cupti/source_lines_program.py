"""Compiles kernels without a GPU and prints, as JSON, the lines that the real libcupti finds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from proton_bench import _native

NVIDIA = Path(triton.__file__).parent / "backends" / "nvidia"


@triton.jit
def inner(value):  # type: ignore[no-untyped-def]
    grown = tl.exp(value)  # the line of inlined code
    return grown * 3


@triton.jit
def outer(value):  # type: ignore[no-untyped-def]
    return inner(value) + value


@triton.jit  # type: ignore[untyped-decorator]
def rotate(source, target, count, block: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    values = tl.load(source + offsets, mask=offsets < count)
    values = outer(values)
    tl.store(target + offsets, values / tl.sum(values, 0), mask=offsets < count)


def disassembled(cubin: bytes) -> dict[int, int]:
    """Return nvdisasm's line of each instruction, without the callers of inlined code."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        command = [str(NVIDIA / "bin" / "nvdisasm"), "-g", "-c", str(file)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines: dict[int, int] = {}
    line = 0
    for row in text.splitlines():
        if marker := re.search(r'//## File "[^"]+", line (\d+)', row):
            line = int(marker[1])
        if line and (instruction := re.match(r"\s+/\*([0-9a-f]{4,})\*/", row)):
            lines[int(instruction[1], 16)] = line
    return lines


def damaged(cubin: bytes) -> Iterator[bytes]:
    """Yield the cubin cut short, with wrong bytes, and other bytes."""
    random = Random(7)
    for _ in range(40):
        yield cubin[: random.randrange(len(cubin))]
        wrong = bytearray(cubin)
        for _ in range(8):
            wrong[random.randrange(len(wrong))] = random.randrange(256)
        yield bytes(wrong)
        yield random.randbytes(3000)


def main() -> None:
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
    signature = {"source": "*fp32", "target": "*fp32", "count": "i32", "block": "constexpr"}
    kernel: Any = triton.compile(
        ASTSource(fn=rotate, signature=signature, constexprs={"block": 256}),
        target=GPUTarget("cuda", 90, 32),
    )
    cubin = kernel.asm["cubin"]
    expected = disassembled(cubin)
    library = [(str(NVIDIA / "lib" / "cupti" / "libcupti.so"), "test", False)]
    found = _native.source_lines(library, cubin, "rotate", list(expected))
    unknown = _native.source_lines(library, cubin, "another_function", [0])
    harmless = [_native.source_lines(library, each, "rotate", [0, 256]) for each in damaged(cubin)]
    answer = {
        "damaged": len(harmless),
        "found": found,
        "expected": list(expected.values()),
        "unknown": unknown,
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()

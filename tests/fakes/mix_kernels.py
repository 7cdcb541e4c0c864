"""Kernels whose instructions are counted, compiled by Triton without a GPU.

    python mix_kernels.py compile     prints the assembly of each, as one JSON object
    python mix_kernels.py record OUT  launches a kernel in two sessions, OUT/dot.proton with tl.dot

There is no device: what launches is a driver that loads kernels, and each launch is reported with
the hash of its code, as the collectors of GPUs do.
"""

# ruff: noqa: N803 - Triton's capitals for constants
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from fakes.triton_driver import FakeDriver
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import proton_bench as proton
from proton_bench import _native

TARGETS = {
    "80": ("ptx", GPUTarget("cuda", 80, 32)),
    "90": ("ptx", GPUTarget("cuda", 90, 32)),
    "gfx942": ("amdgcn", GPUTarget("hip", "gfx942", 64)),
    "gfx1100": ("amdgcn", GPUTarget("hip", "gfx1100", 32)),
}


@triton.jit
def matmul(a, b, c, n, K: tl.constexpr, B: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    sums = tl.zeros((B, B), tl.float32)
    for start in range(0, n, K):
        inner = start + tl.arange(0, K)
        left = tl.load(a + rows[:, None] * n + inner[None, :])
        right = tl.load(b + inner[:, None] * n + columns[None, :])
        sums += tl.dot(left, right)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


@triton.jit
def softmax(x, y, n, B: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(y + tl.program_id(0) * n + at, powers / tl.sum(powers, 0), mask=at < n)


@triton.jit
def product(a, b, c, DOT: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, 32)
    square = at[:, None] * 32 + at[None, :]
    left, right = tl.load(a + square), tl.load(b + square)
    if DOT:
        found = tl.dot(left, right)
    else:
        found = tl.sum(left[:, :, None].to(tl.float32) * right[None, :, :].to(tl.float32), axis=1)
    tl.store(c + square, found)


def _compile() -> None:
    pointers = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "n": "i32"}
    kernels: dict[str, tuple[Any, dict[str, str], dict[str, int]]] = {
        "matmul": (matmul, pointers, {"K": 64, "B": 128}),
        "softmax": (softmax, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"B": 1024}),
    }
    found = {}
    for name, (function, signature, constants) in kernels.items():
        for arch, (language, target) in TARGETS.items():
            source = ASTSource(
                fn=function,
                signature={**signature, **dict.fromkeys(constants, "constexpr")},
                constexprs=constants,
            )
            found[f"{name} {arch}"] = triton.compile(source, target=target).asm[language]
    sys.stdout.write(json.dumps(found) + "\n")


def _record(folder: Path) -> None:
    FakeDriver()
    half, whole = torch.zeros(1024, dtype=torch.float16), torch.zeros(1024)
    for name, uses_dot in (("dot", True), ("sum", False)):
        session = proton.start(folder / name, backend="cpu")
        kernel = product[(1,)](half, half, whole, DOT=uses_dot)
        variant = {"code_hash": int(kernel.hash[:16], 16)}
        duration = 1_000_000 if uses_dot else 3_000_000
        _native.emit_kernel(_native.emit_launch(), "product", 0, duration, "CUDA", 0, 7, variant)
        proton.finalize(session, output_format="proton")
    sys.stdout.write(json.dumps(sorted(map(str, folder.glob("*.proton")))) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        _compile()
    else:
        _record(Path(sys.argv[2]))

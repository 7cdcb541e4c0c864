"""Vector addition without a scope, for ``override.py``: once as it is, once recorded.

python examples/intra_kernel/plain_add.py --plain      # runs it; without a GPU, only compiles it
python examples/intra_kernel/plain_add.py NAME         # records it in NAME.hatchet
"""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl

import proton_bench as proton

__all__ = ["main"]

SIZE, BLOCK = 4096, 1024


@triton.jit
def plain_add_kernel(out, x, y, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + offsets)
    right = tl.load(y + offsets)
    tl.store(out + offsets, left + right)


def launch() -> None:
    """Run the kernel once and check it against torch."""
    x, y = (torch.randn(SIZE, device="cuda") for _ in range(2))
    out = torch.empty_like(x)
    plain_add_kernel[(SIZE // BLOCK,)](out, x, y, BLOCK=BLOCK)
    torch.testing.assert_close(out, x + y)


def compile_only() -> None:
    """Compile the kernel for a GPU that is not here."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {"out": "*fp32", "x": "*fp32", "y": "*fp32", "BLOCK": "constexpr"}
    source = ASTSource(fn=plain_add_kernel, signature=signature, constexprs={"BLOCK": BLOCK})
    triton.compile(source, target=GPUTarget("cuda", 90, 32))


def main() -> None:
    """Do what the command line says."""
    [name] = sys.argv[1:]
    if name != "--plain":
        session = proton.start(name, backend="instrumentation")
        launch()
        proton.finalize(session)
    elif torch.cuda.is_available():
        launch()
    else:
        compile_only()


if __name__ == "__main__":
    main()

"""Vector addition whose kernel measures how long it loads, adds and stores.

python examples/intra_kernel/scoped_add.py                       # a timeline of every warp
python examples/intra_kernel/scoped_add.py --op-measure          # sums of cycles as a tree
proton -b instrumentation examples/intra_kernel/scoped_add.py    # the same under the command
proton view scoped_add.hatchet -m cycles,normalized_cycles
"""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

from recording import Options, parse, recorded  # before triton: switches its interpreter on

# isort: split
import torch
import triton
import triton.language as tl
from device import DEVICE, pick

import proton_bench.language as pl

__all__ = ["add", "main"]

BLOCK = pick(full=1024, small=64)


@triton.jit
def scoped_add_kernel(out, x, y, size, BLOCK: tl.constexpr):
    with pl.scope("add_block"):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < size
        with pl.scope("load"):
            with pl.scope("load_x"):
                left = tl.load(x + offsets, mask=inside)
            with pl.scope("load_y"):
                right = tl.load(y + offsets, mask=inside)
        with pl.scope("store"):
            tl.store(out + offsets, left + right, mask=inside)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return ``x + y``.

    Args:
        x: Vector.
        y: Vector of the same size.
    """
    out = torch.empty_like(x)
    scoped_add_kernel[(triton.cdiv(x.numel(), BLOCK),)](out, x, y, x.numel(), BLOCK=BLOCK)
    return out


def main(options: Options | None = None) -> None:
    """Record one launch and check it against torch.

    Args:
        options: What to record; the command line's by default.
    """
    options = parse(__doc__) if options is None else options
    x, y = (torch.randn(pick(full=100_000, small=200), device=DEVICE) for _ in range(2))
    with recorded("scoped_add", options):
        ours = add(x, y)
    torch.testing.assert_close(ours, x + y)
    print("scoped_add: agrees with torch")


if __name__ == "__main__":
    main()

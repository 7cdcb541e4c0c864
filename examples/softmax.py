"""Row-wise softmax: one program instance per row, the row stays on chip.

proton examples/softmax.py
proton pytest examples/test_softmax.py
"""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

from device import DEVICE, pick  # before triton: switches its interpreter on without a GPU

# isort: split
import torch
import triton
import triton.language as tl

import proton_bench as proton

__all__ = ["main", "softmax"]


def softmax_metadata(grid, metadata, args):
    """Describe one launch: two passes over the row in registers, one read and one write."""
    rows, columns = args["rows"], args["columns"]
    return {
        "name": f"softmax_{rows}x{columns}",
        "flops32": 5.0 * rows * columns,
        "bytes": 2 * rows * columns * args["x"].element_size(),
    }


@triton.jit(launch_metadata=softmax_metadata)
def softmax_kernel(out, x, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(x + row * x_stride + offsets, mask=inside, other=-float("inf")).to(tl.float32)
    weights = tl.exp(values - tl.max(values, axis=0))
    result = weights / tl.sum(weights, axis=0)
    tl.store(out + row * out_stride + offsets, result, mask=inside)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return softmax over the last dimension of a matrix.

    Args:
        x: Matrix [rows, columns] whose rows are contiguous.
    """
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    num_warps = 4 if block < 2048 else 8
    softmax_kernel[(rows,)](
        out, x, x.stride(0), out.stride(0), rows, columns, BLOCK=block, num_warps=num_warps
    )
    return out


def main() -> None:
    """Profile three widths and check each against torch."""
    session = proton.start("softmax", hook="triton")
    rows = pick(full=4096, small=16)
    for columns in pick(full=(1024, 4096, 8192), small=(64, 200, 512)):
        with proton.scope(f"columns_{columns}"):
            x = torch.randn(rows, columns, device=DEVICE)
            with proton.scope("triton"):
                ours = softmax(x)
            with proton.scope("torch"):
                reference = torch.softmax(x, dim=-1)
            torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-6)
    proton.finalize(session)
    print("softmax: every width agrees with torch")


if __name__ == "__main__":
    main()

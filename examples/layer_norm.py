"""Layer norm with its backward pass, as one torch.autograd.Function.

proton examples/layer_norm.py
proton pytest examples/test_layer_norm.py
"""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

from device import DEVICE, pick  # before triton: switches its interpreter on without a GPU

# isort: split
import torch
import triton
import triton.language as tl

import proton_bench as proton

__all__ = ["layer_norm", "main"]


def forward_metadata(grid, metadata, args):
    """Describe one forward launch: read x, write y."""
    size = args["rows"] * args["columns"]
    return {
        "name": f"layer_norm_forward_{args['rows']}x{args['columns']}",
        "flops32": 8.0 * size,
        "bytes": 2 * size * args["x"].element_size(),
    }


def backward_metadata(grid, metadata, args):
    """Describe one backward launch: read x and dy, write dx."""
    size = args["rows"] * args["columns"]
    return {
        "name": f"layer_norm_backward_{args['rows']}x{args['columns']}",
        "flops32": 14.0 * size,
        "bytes": 3 * size * args["x"].element_size(),
    }


@triton.jit(launch_metadata=forward_metadata)
def forward_kernel(y, x, weight, bias, mean_out, rstd_out, rows, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    value = tl.load(x + row * columns + offsets, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(value, axis=0) / columns
    centred = tl.where(inside, value - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(weight + offsets, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + offsets, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * columns + offsets, centred * rstd * w + b, mask=inside)
    tl.store(mean_out + row, mean)
    tl.store(rstd_out + row, rstd)


@triton.jit(launch_metadata=backward_metadata)
def backward_kernel(
    dx, dweight, dbias, dy, x, weight, mean_in, rstd_in, rows, columns, BLOCK: tl.constexpr
):
    # Each program takes every GROUPS-th row and keeps its own sums for weight and bias, so that
    # no two programs ever write to the same place; the caller adds the few partial sums.
    group = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    w = tl.load(weight + offsets, mask=inside, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    db = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(group, rows, tl.num_programs(0)):
        grad = tl.load(dy + row * columns + offsets, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(x + row * columns + offsets, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(mean_in + row)
        rstd = tl.load(rstd_in + row)
        normal = tl.where(inside, (value - mean) * rstd, 0.0)
        scaled = grad * w
        along = tl.sum(normal * scaled, axis=0) / columns
        offset = tl.sum(scaled, axis=0) / columns
        tl.store(dx + row * columns + offsets, (scaled - normal * along - offset) * rstd, inside)
        dw += grad * normal
        db += grad
    tl.store(dweight + group * columns + offsets, dw, mask=inside)
    tl.store(dbias + group * columns + offsets, db, mask=inside)


class LayerNorm(torch.autograd.Function):
    """Layer norm of a matrix with the Triton kernels above."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        """Normalise every row of ``x`` [rows, columns]."""
        rows, columns = x.shape
        y = torch.empty_like(x)
        mean = torch.empty(rows, dtype=torch.float32, device=x.device)
        rstd = torch.empty_like(mean)
        block = triton.next_power_of_2(columns)
        forward_kernel[(rows,)](y, x, weight, bias, mean, rstd, rows, columns, eps, BLOCK=block)
        ctx.save_for_backward(x, weight, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        """Return the gradients of x, weight and bias."""
        x, weight, mean, rstd = ctx.saved_tensors
        rows, columns = x.shape
        groups = min(rows, pick(full=256, small=4))
        dx = torch.empty_like(x)
        dweight = torch.empty(groups, columns, dtype=torch.float32, device=x.device)
        dbias = torch.empty_like(dweight)
        block = triton.next_power_of_2(columns)
        backward_kernel[(groups,)](
            dx, dweight, dbias, dy.contiguous(), x, weight, mean, rstd, rows, columns, BLOCK=block
        )
        return dx, dweight.sum(0).to(weight.dtype), dbias.sum(0).to(weight.dtype), None


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Normalise the rows of a contiguous matrix; differentiable.

    Args:
        x: Matrix [rows, columns].
        weight: Scale [columns].
        bias: Shift [columns].
        eps: Added to the variance.
    """
    return LayerNorm.apply(x, weight, bias, eps)


def main() -> None:
    """Profile forward and backward and check both against torch."""
    session = proton.start("layer_norm", hook="triton")
    rows, columns = pick(full=(4096, 4096), small=(16, 192))
    x = torch.randn(rows, columns, device=DEVICE, requires_grad=True)
    weight = torch.rand(columns, device=DEVICE, requires_grad=True)
    bias = torch.rand(columns, device=DEVICE, requires_grad=True)
    dy = torch.randn(rows, columns, device=DEVICE)
    with proton.scope("triton"):
        with proton.scope("forward"):
            ours = layer_norm(x, weight, bias)
        with proton.scope("backward"):
            gradients = torch.autograd.grad(ours, (x, weight, bias), dy)
    with proton.scope("torch"):
        reference = torch.nn.functional.layer_norm(x, (columns,), weight, bias)
        expected = torch.autograd.grad(reference, (x, weight, bias), dy)
    torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradients, expected, rtol=1e-3, atol=1e-2)
    proton.finalize(session)
    print("layer_norm: forward and backward agree with torch")


if __name__ == "__main__":
    main()

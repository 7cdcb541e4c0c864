"""Operators of torch on the CPU, as various as the kernels of a study on a GPU.

A slowed variant works on that many rows more: one iteration is one row.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from benchmarks.studies.gate.study.plan import SLOWDOWNS, Work

__all__ = ["make_works"]

_STEPS = 100


def make_works(*, tiny: bool) -> list[Work]:
    """Return all operators; ``tiny`` leaves almost nothing for them to do."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    longest = round(_STEPS * (1 + max(SLOWDOWNS)))
    width = 8 if tiny else 256
    rows = torch.rand(longest, width)
    square = torch.rand(width, width)
    heads = torch.rand(1, 2, longest, 8 if tiny else 64)
    large = torch.rand(longest, 16 * width)
    target = torch.empty_like(large)

    def gemm(extra: int) -> None:
        torch.mm(rows[: _STEPS + extra], square)

    def softmax(extra: int) -> None:
        torch.softmax(rows[: _STEPS + extra], 1)

    def layer_norm(extra: int) -> None:
        functional.layer_norm(rows[: _STEPS + extra], (width,))

    def attention(extra: int) -> None:
        part = heads[:, :, : _STEPS + extra]
        functional.scaled_dot_product_attention(part, part, part)

    def elementwise(extra: int) -> None:
        torch.add(rows[: _STEPS + extra], 1.0)

    def reduction(extra: int) -> None:
        torch.sum(large[: _STEPS + extra])

    def copy(extra: int) -> None:
        target[: _STEPS + extra].copy_(large[: _STEPS + extra])

    def fma(extra: int) -> None:
        part = rows[: _STEPS + extra]
        torch.addcmul(part, part, part)

    works = (gemm, softmax, layer_norm, attention, elementwise, reduction, copy, fma)
    return [Work(each.__name__, _STEPS, each) for each in works]

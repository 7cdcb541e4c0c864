# ruff: noqa: D100, D103 - the names of the tests say what they check
from __future__ import annotations

import pytest
from device import DEVICE, pick
from layer_norm import layer_norm

# isort: split
import torch

import proton_bench as proton

SHAPES = pick(full=((1024, 1024), (4096, 4096), (512, 1000)), small=((8, 64), (16, 200)))


@pytest.fixture
def parameters(shape: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    rows, columns = shape
    x = torch.randn(rows, columns, device=DEVICE, requires_grad=True)
    weight = torch.rand(columns, device=DEVICE, requires_grad=True)
    bias = torch.rand(columns, device=DEVICE, requires_grad=True)
    return x, weight, bias


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_forward_agrees_with_torch(parameters, shape: tuple[int, int]) -> None:
    x, weight, bias = parameters

    with proton.scope("triton"):
        ours = layer_norm(x, weight, bias)
    with proton.scope("torch"):
        reference = torch.nn.functional.layer_norm(x, shape[1:], weight, bias)

    torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_gradients_agree_with_torch(parameters, shape: tuple[int, int]) -> None:
    x, weight, bias = parameters
    dy = torch.randn_like(x)

    with proton.scope("triton"):
        ours = torch.autograd.grad(layer_norm(x, weight, bias), parameters, dy)
    with proton.scope("torch"):
        output = torch.nn.functional.layer_norm(x, shape[1:], weight, bias)
        reference = torch.autograd.grad(output, parameters, dy)

    torch.testing.assert_close(ours, reference, rtol=1e-3, atol=1e-2)

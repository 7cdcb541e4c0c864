"""A small language model and its training step, with scopes where a profiler offers them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Scope = Callable[[str], AbstractContextManager[object]]
NOTHING = nullcontext()


def no_scope(_name: str) -> AbstractContextManager[object]:
    """Do nothing, as a program without a profiler."""
    return NOTHING


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of the model and of one batch."""

    layers: int
    width: int
    heads: int
    batch: int
    length: int
    vocabulary: int


class Block(nn.Module):  # type: ignore[misc]
    """Attention and a perceptron, each behind a layer norm and with a residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.norms = nn.ModuleList(nn.LayerNorm(shape.width) for _ in range(2))
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.projection = nn.Linear(shape.width, shape.width)
        self.perceptron = nn.Sequential(
            nn.Linear(shape.width, 4 * shape.width),
            nn.GELU(),
            nn.Linear(4 * shape.width, shape.width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the activations after this block, [batch, length, width]."""
        batch, length, width = x.shape
        qkv = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.perceptron(self.norms[1](x))


class LanguageModel(nn.Module):  # type: ignore[misc]
    """Decoder-only transformer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Parameter(torch.zeros(shape.length, shape.width))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.scope: Scope | None = None  # for a scope per block

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits [batch, length, vocabulary] for ``tokens`` [batch, length]."""
        x = self.tokens(tokens) + self.positions
        for number, block in enumerate(self.blocks):
            if self.scope is None:
                x = block(x)
            else:
                with self.scope(f"block_{number}"):
                    x = block(x)
        return self.head(self.norm(x))


class Trainer:
    """A model, its optimiser and one batch that it learns by heart.

    Args:
        shape: Size of the model and the batch.
        device: Where it is trained.
        compiled: Arguments for torch.compile; None trains eagerly.
    """

    def __init__(
        self, shape: Shape, device: torch.device, compiled: dict[str, Any] | None = None
    ) -> None:
        torch.manual_seed(0)
        self.model = LanguageModel(shape).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        size = (shape.batch, shape.length + 1)
        tokens = torch.randint(shape.vocabulary, size, device=device)
        self.inputs = tokens[:, :-1].contiguous()
        self.targets = tokens[:, 1:].flatten()
        self.device = device
        self.is_eager = compiled is None
        self.loss = self.forward if compiled is None else torch.compile(self.forward, **compiled)

    def forward(self) -> torch.Tensor:
        """Return the loss."""
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            logits = self.model(self.inputs)
            return nn.functional.cross_entropy(logits.flatten(0, 1), self.targets)

    def step(self, scope: Scope | None, name: str = "step") -> None:
        """Run one training step, with a scope per phase, and per block where it is eager."""
        self.model.scope = scope if self.is_eager else None
        scope = scope or no_scope
        if not self.is_eager and self.device.type == "cuda":
            torch.compiler.cudagraph_mark_step_begin()
        with scope(name):
            with scope("forward"):
                loss = self.loss()
            with scope("backward"):
                loss.backward()
            with scope("optimizer"):
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)

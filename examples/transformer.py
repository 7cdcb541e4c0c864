"""Training steps of a small language model in torch, with a scope per block and phase.

proton examples/transformer.py               # full on a GPU, small on a CPU
proton examples/transformer.py --size full   # 12 layers, width 768, batch 8 x 512, bf16
proton pytest examples/test_transformer.py
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
from device import DEVICE, SIZE
from torch import nn

import proton_bench as proton

__all__ = ["SIZES", "Shape", "Trainer", "main"]


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of the model and of one batch."""

    layers: int
    width: int
    heads: int
    batch: int
    length: int
    vocabulary: int
    dtype: torch.dtype


SIZES = {
    "full": Shape(12, 768, 12, 8, 512, 32_000, torch.bfloat16),
    "small": Shape(2, 64, 2, 2, 32, 256, torch.float32),
}


class Block(nn.Module):
    """Attention and a two-layer perceptron, each behind a layer norm and with a residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.norm_attention = nn.LayerNorm(shape.width)
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.projection = nn.Linear(shape.width, shape.width)
        self.norm_perceptron = nn.LayerNorm(shape.width)
        self.perceptron = nn.Sequential(
            nn.Linear(shape.width, 4 * shape.width),
            nn.GELU(),
            nn.Linear(4 * shape.width, shape.width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the activations after this block, [batch, length, width]."""
        with proton.scope("attention"):
            x = x + self.attend(self.norm_attention(x))
        with proton.scope("perceptron"):
            return x + self.perceptron(self.norm_perceptron(x))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """Return causal self-attention of ``x`` [batch, length, width]."""
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.projection(mixed.transpose(1, 2).reshape(batch, length, width))


class LanguageModel(nn.Module):
    """Decoder-only transformer over a small vocabulary."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.length, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits [batch, length, vocabulary] for ``tokens`` [batch, length]."""
        with proton.scope("embedding"):
            positions = torch.arange(tokens.shape[1], device=tokens.device)
            x = self.tokens(tokens) + self.positions(positions)
        for number, block in enumerate(self.blocks):
            with proton.scope(f"block_{number}"):
                x = block(x)
        with proton.scope("head"):
            return self.head(self.norm(x))


class Trainer:
    """A model, its optimiser and one batch that it learns by heart."""

    def __init__(self, shape: Shape, device: torch.device) -> None:
        torch.manual_seed(0)
        self.shape = shape
        self.device = device
        self.model = LanguageModel(shape).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        size = (shape.batch, shape.length + 1)
        self.tokens = torch.randint(shape.vocabulary, size, device=device)
        self.flops = 6.0 * sum(p.numel() for p in self.model.parameters())

    def step(self) -> float:
        """Run one training step and return its loss."""
        inputs, targets = self.tokens[:, :-1], self.tokens[:, 1:]
        bits = torch.finfo(self.shape.dtype).bits
        with proton.scope("step", {"tokens": inputs.numel()}):
            metrics = {f"flops{bits}": self.flops * inputs.numel() / 3}
            with proton.scope("forward", metrics), self.precision():
                logits = self.model(inputs)
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
            with proton.scope("backward", {f"flops{bits}": self.flops * inputs.numel() * 2 / 3}):
                loss.backward()
            with proton.scope("optimizer"):
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def precision(self) -> torch.autocast:
        """Return the context in which products run in the dtype of the shape."""
        enabled = self.shape.dtype is not torch.float32
        dtype = self.shape.dtype if enabled else torch.bfloat16
        return torch.autocast(self.device.type, dtype=dtype, enabled=enabled)


def main() -> None:
    """Profile a few training steps."""
    parser = argparse.ArgumentParser(description="Profile training steps of a transformer.")
    parser.add_argument("--size", choices=SIZES, default=SIZE)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    session = proton.start("transformer")
    trainer = Trainer(SIZES[options.size], DEVICE)
    losses = [trainer.step() for _ in range(options.steps)]
    proton.finalize(session)
    print("transformer: loss", " ".join(f"{loss:.3f}" for loss in losses))


if __name__ == "__main__":
    main()

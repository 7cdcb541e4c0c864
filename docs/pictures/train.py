"""Train a small GPT-2 for forty steps; README.md shows what `proton` says about it."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=256, n_head=4, n_positions=128))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(40):
    tokens = torch.randint(50257, (2, 128))
    model(tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()

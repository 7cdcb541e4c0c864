"""A training loop that waits for its DataLoader: recorded by `study`, or run by hand."""

from __future__ import annotations

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

_ITEMS, _WIDTH = 2048, 256


class SlowItems(Dataset[torch.Tensor]):
    """Items that take a while to make, as decoding of a picture does."""

    def __init__(self, item_ms: float) -> None:
        self._item_s = item_ms / 1e3

    def __len__(self) -> int:
        return _ITEMS

    def __getitem__(self, index: int) -> torch.Tensor:
        end_s = time.perf_counter() + self._item_s
        item = torch.full((_WIDTH,), float(index))
        while time.perf_counter() < end_s:
            item = item * 0.5
        return item


def main() -> None:
    """Train a small model for some steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--item-ms", type=float, default=1.0, help="time to make an item")
    parser.add_argument("--step-ms", type=float, default=0.0, help="time of the host in a step")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(
        torch.nn.Linear(_WIDTH, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    items = SlowItems(options.item_ms)
    loader = DataLoader(items, batch_size=16, shuffle=True, num_workers=options.workers)
    done = 0
    while done < options.steps:
        for batch in loader:
            optimizer.zero_grad()
            model(batch.to(device)).square().mean().backward()
            optimizer.step()
            time.sleep(options.step_ms / 1e3)
            done += 1
            if done == options.steps:
                break


if __name__ == "__main__":
    main()

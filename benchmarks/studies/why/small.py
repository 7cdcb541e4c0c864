"""Kernels of 8 us and more in a random order: python -m benchmarks.studies.why.small --out FOLDER.

Records itself by samples (`counters`) and launch by launch (`counters=exact`), and prints what part
of their peaks DRAM and tensor units reached by both, and the largest differences. Needs a GPU and
torch.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.studies.why.study import record, share
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

__all__ = ["main"]

_SUMS = (4, 8, 16, 32)  # million floats
_PRODUCTS = (1024, 1536, 2048, 3072)
_ROWS = (2048, 8192)  # of 4096 values, of a softmax
_QUANTITIES = ("dram", "tensor")
_FROM_US = 10.0
# Rounds are fewer where launches wait for each other.
_RUNS = {"mixed": ("counters", "8"), "exact": ("counters:exact=launch", "0.5")}


def _work() -> dict[str, Callable[[], Any]]:
    import torch

    found: dict[str, Callable[[], Any]] = {}
    values = torch.zeros(_SUMS[-1] << 20, device="cuda")
    out = torch.empty_like(values)
    for millions in _SUMS:
        size = millions << 20
        found[f"sum {millions} Mi"] = lambda n=size: torch.add(values[:n], 1.0, out=out[:n])
    for size in _PRODUCTS:
        factor = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
        found[f"product {size}"] = lambda factor=factor: torch.mm(factor, factor)
    for rows in _ROWS:
        table = torch.randn(rows, 4096, device="cuda")
        found[f"softmax {rows}"] = lambda table=table: table.softmax(-1)
    return found


def _run(seconds: float) -> None:
    import torch

    import proton_bench as proton

    work = list(_work().items())
    order = random.Random(24)
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        order.shuffle(work)
        for name, launch in work:
            with proton.scope(name):
                launch()
        torch.cuda.synchronize()


def _time_us(profile: Profile, scope: str) -> float:
    (row,) = [row for row in range(len(profile)) if profile.name(row) == scope]
    return float(profile.inclusive("time (ns)")[row] / profile.inclusive("count")[row]) / 1e3


def main(arguments: Sequence[str] | None = None) -> int:
    """Record and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder of the profiles")
    parser.add_argument("--seconds", type=float, help="run the kernels, and nothing else")
    options = parser.parse_args(arguments)
    if options.seconds is not None:
        _run(options.seconds)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    profiles = {}
    for name, (mode, seconds) in _RUNS.items():
        record((options.out / name).absolute(), mode, (__file__, "--seconds", seconds))
        profiles[name] = read_profile(options.out / f"{name}.proton")
    print(f"| kernel | us | {' | '.join(f'{q} {n}' for q in _QUANTITIES for n in _RUNS)} |")
    print("|---" * (2 + len(_QUANTITIES) * len(_RUNS)) + "|")
    worst = dict.fromkeys(_QUANTITIES, 0.0)
    for scope in _work():
        time_us = _time_us(profiles["mixed"], scope)
        cells = []
        for quantity in _QUANTITIES:
            found = [share(profile, scope, quantity) for profile in profiles.values()]
            cells += ["-" if each is None else f"{each:.1f}" for each in found]
            known = [each for each in found if each is not None]
            if known and time_us >= _FROM_US:
                worst[quantity] = max(worst[quantity], max(known) - min(known))
        print(f"| {scope} | {time_us:.1f} | {' | '.join(cells)} |")
    print(f"largest difference from {_FROM_US:g} us up, in points: {worst}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How much of a sweep is run: all of it in `make nightly`, a part that stands for it elsewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")
IS_WHOLE = "PROTON_BENCH_STRESS" in os.environ  # tests themselves run without it


def how_many(whole: int, keep: int) -> int:
    """Return how many cases of a sweep are run, of so many that there are."""
    return whole if IS_WHOLE else min(whole, keep)


def some(cases: Sequence[Case], keep: int) -> list[Case]:
    """Return the cases that are run: evenly spaced ones, the first and the last among them."""
    count = how_many(len(cases), keep)
    if count < 2:
        return list(cases[:count])
    return [cases[number * (len(cases) - 1) // (count - 1)] for number in range(count)]

"""Chooses where the examples run: on a GPU, or without one in Triton's interpreter.

Import this module before ``triton``: without a GPU it switches the interpreter on, which Triton
reads while it is imported.
"""

from __future__ import annotations

import os
from typing import TypeVar

import torch

__all__ = ["DEVICE", "ON_GPU", "SIZE", "can_autotune", "pick"]

T = TypeVar("T")

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
# "full" is real work for a GPU, "small" the same code in seconds on two CPU cores.
SIZE = os.environ.get("EXAMPLES_SIZE", "full" if ON_GPU else "small")

if SIZE not in ("full", "small"):
    raise SystemExit(f"EXAMPLES_SIZE is {SIZE!r}; set it to full or small")
if not ON_GPU:
    os.environ.setdefault("TRITON_INTERPRET", "1")
# The default of every release so far; Triton 3.9 warns if it is not given.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")


def pick(*, full: T, small: T) -> T:
    """Return the value for the chosen size.

    Args:
        full: Value for a GPU.
        small: Value that keeps the same code short on a CPU.
    """
    return full if SIZE == "full" else small


def can_autotune() -> bool:
    """Return whether Triton has a driver to benchmark with: a GPU's, or the profiler's own."""
    import triton

    try:
        _ = triton.runtime.driver.active
    except RuntimeError:
        return False
    return True

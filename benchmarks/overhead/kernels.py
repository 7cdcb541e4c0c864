"""Triton kernels that do almost nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import triton


def describe(_grid: object, metadata: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return launch metadata of the kind that examples of Triton return."""
    size = arguments["n"]
    return {"name": f"{metadata.name}_{size}", "flops32": 2.0 * size, "bytes": 8 * size}


@triton.jit
def empty(x, n):  # type: ignore[no-untyped-def]
    """Do nothing."""


@triton.jit(launch_metadata=describe)
def described(x, n):  # type: ignore[no-untyped-def]
    """Do nothing, with metadata."""

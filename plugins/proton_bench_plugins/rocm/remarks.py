"""Remarks at the end of a session on AMD GPUs: why kernels are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["remark_on"]


def remark_on(counts: Mapping[str, int], facts: Mapping[str, Any]) -> str | None:
    """Return one line on kernels that are missing, or None.

    Args:
        counts: The session's counts.
        facts: Facts of the collector.
    """
    if counts["records"] > 0 or counts["cleared"] > 0:
        return None
    launches = counts["launches"] - counts["failed"]
    if launches > 0:
        return (
            f"{launches} launches were seen, but no kernel record arrived: {facts['library']} may "
            "belong to another ROCm than the program's HIP"
        )
    reasons = (
        "the process launched none while the session was active",
        "a first use of the GPU started HIP before the session: record with `proton run`, or "
        "start the session earlier",
        "they ran in other processes, such as children that are not recorded",
    )
    return f"no kernel was recorded: {', or '.join(reasons)}"

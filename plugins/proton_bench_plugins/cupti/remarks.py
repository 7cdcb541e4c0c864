"""Remarks at the end of a session: why kernels are missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["loaded_libraries", "remark_on"]

_TAKEN = "another profiler of this process, such as torch.profiler, took CUPTI's buffers"


def remark_on(
    counts: Mapping[str, int],
    facts: Mapping[str, Any],
    loaded: Callable[[], Iterable[str]] | None = None,
) -> str | None:
    """Return one line on kernels that are missing, or None.

    Args:
        counts: The session's counts.
        facts: Facts of the collector.
        loaded: Returns the files of libcupti in this process.
    """
    sampling = _sampling_remark(facts)
    if sampling is not None and counts["records"] > 0:
        return sampling
    is_taken = facts["taken_buffers"] > 0 or facts["foreign_buffers"] > 0
    if counts["dropped"] > 0 and is_taken:
        return f"{_TAKEN}; {counts['dropped']} records are lost, so end that one first"
    if counts["records"] > 0 or counts["cleared"] > 0:
        return None
    launches = counts["launches"] - counts["failed"]
    if launches > 0:
        return (
            f"{launches} launches were seen, but no kernel record arrived: {facts['library']} may "
            "not fit the driver; name another with PROTON_BENCH_CUPTI_LIB"
        )
    return _nothing_seen(facts, loaded or loaded_libraries)


def _sampling_remark(facts: Mapping[str, Any]) -> str | None:
    """Return why kernels ran but were not sampled, or None."""
    sampled = facts.get("pc_sampling")
    if not sampled:
        return None
    if sampled["error"]:
        word = "some PC samples are missing" if sampled["samples"] else "no PC sample was taken"
        return f"{word}: {sampled['error']}"
    if not sampled["samples"]:
        return (
            "no PC sample was taken: kernels ran for less than the period of "
            f"{sampled['period_cycles']} cycles, or in contexts that were not sampled; use a "
            "smaller interval"
        )
    return None


def _nothing_seen(facts: Mapping[str, Any], loaded: Callable[[], Iterable[str]]) -> str:
    if facts["torch_profiler_pauses"] > 0:
        return "no kernel was recorded: torch.profiler had CUPTI when they ran"
    reasons = [
        "the process launched none while the session was active",
        "all were in CUDA graphs made before the session started",
        "they ran in other processes, such as children that are not recorded",
    ]
    others = [path for path in loaded() if path != os.path.realpath(facts["library"])]
    if others:
        reasons.append(
            f"{facts['library']} was used, but the program has {others[0]}: name that one with "
            "PROTON_BENCH_CUPTI_LIB"
        )
    return f"no kernel was recorded: {', or '.join(reasons)}"


def loaded_libraries() -> list[str]:
    """Return the files of libcupti that this process has loaded, without links."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
            files = {line.split(maxsplit=5)[-1].strip() for line in lines}
    except OSError:
        return []
    return sorted(
        os.path.realpath(file) for file in files if os.path.basename(file).startswith("libcupti.so")
    )

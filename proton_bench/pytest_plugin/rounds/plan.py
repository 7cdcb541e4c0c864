"""Plan for timing a function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Device", "Plan"]


class Device(StrEnum):
    """The device whose clock times a round."""

    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a function is to be timed.

    Attributes:
        rounds: Number of rounds; None means as many as fit into ``max_time_s``.
        warmup: Calls before the first round, at least 1.
        max_time_s: Time limit of all rounds, if ``rounds`` is None.
        min_round_ns: Least time of a round on the CPU, which sets the number of calls.
        flush_l2: Whether the L2 cache of a GPU is emptied before each round.
        cudagraph: Whether a CUDA graph of one call is timed instead of the call.
        device: Device whose clock counts; None finds out.
    """

    rounds: int | None = None
    warmup: int = 3
    max_time_s: float = 0.5
    min_round_ns: float = 100_000.0
    flush_l2: bool = True
    cudagraph: bool = False
    device: Device | None = None

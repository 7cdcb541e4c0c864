"""Timers of rounds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from proton_bench.pytest_plugin.rounds.plan import Device

__all__ = ["Around", "CpuTimer", "RoundTime", "Timer", "wait_for_gpu"]

# Returns a context manager for a named step.
Around = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class RoundTime:
    """Times of one round.

    Attributes:
        cpu_ns: On the CPU: until the work was done, or with a GPU's timer until it was submitted.
        gpu_ns: On the GPU; None if its clock was not read.
    """

    cpu_ns: float
    gpu_ns: float | None = None

    @property
    def decisive_ns(self) -> float:
        """The GPU's time if there is one, else the CPU's."""
        return self.cpu_ns if self.gpu_ns is None else self.gpu_ns


class Timer(Protocol):
    """Begins and ends rounds."""

    @property
    def device(self) -> Device:
        """Whose clock counts."""

    def prepare(self) -> None:
        """Prepare a round, untimed."""

    def begin(self) -> None:
        """Begin a round."""

    def end(self) -> RoundTime:
        """End the round, wait until its work is done, and return its time."""


class CpuTimer:
    """Reads a clock of the CPU and waits for work given to a GPU."""

    device = Device.CPU
    clock = staticmethod(time.perf_counter_ns)

    def __init__(self) -> None:
        self._begun_ns = 0

    def prepare(self) -> None:
        """Do nothing: rounds on the CPU need no preparation."""

    def begin(self) -> None:
        """Begin a round."""
        self._begun_ns = self.clock()

    def end(self) -> RoundTime:
        """End the round and return its time."""
        wait_for_gpu()
        return RoundTime(float(self.clock() - self._begun_ns))


def wait_for_gpu() -> None:
    """Wait for work that torch gave to a GPU; does nothing before there was any."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()

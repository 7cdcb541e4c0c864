"""Canaries: kernels of a backend that never change."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

ScopeMaker = Callable[[str], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Ticks:
    """Sums of the counts of a canary's launches.

    Attributes:
        cycles: Cycles of the device's clock.
        ns: Nanoseconds of the device's timer.
        launches: Number of launches.
    """

    cycles: int = 0
    ns: int = 0
    launches: int = 0


class Canary(Protocol):
    """Kernels that never change, so a change of their times is the machine's.

    They run only in recordings for a gate. An exception only costs the run its canary. A canary
    starts no driver or device that the target does not use.
    """

    def watch(self, due: Callable[[], None]) -> None:
        """Call back once, on the thread of the target, when the target begins to use a device."""

    def unwatch(self) -> None:
        """Stop calling back."""

    def launch(self, scope: ScopeMaker, names: tuple[str, str]) -> Ticks | None:
        """Launch, first until the clock is steady; None if the target uses no device.

        Args:
            scope: Opens a scope with a name.
            names: Names of the outer scope, and of the inner one for warming up.
        """

"""What a canary is: kernels that a backend brings along and that never change."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Canary", "ScopeMaker", "Ticks"]

ScopeMaker = Callable[[str], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Ticks:
    """What the launches of a canary counted by themselves, added up.

    Attributes:
        cycles: Of the clock that the device computes by.
        ns: Of the device's timer meanwhile.
        launches: Number of launches.
    """

    cycles: int = 0
    ns: int = 0
    launches: int = 0


class Canary(Protocol):
    """Kernels that never change, so that what moves them is the machine.

    They run in recordings for a gate only. Whatever it raises costs the run its canary and nothing
    else; it starts no driver and no device that the target does not use.
    """

    def watch(self, due: Callable[[], None]) -> None:
        """Call back once, on the thread of the target, when the target begins to use a device."""

    def unwatch(self) -> None:
        """Call nothing back from now on."""

    def launch(self, scope: ScopeMaker, names: tuple[str, str]) -> Ticks | None:
        """Launch, first until the clock is steady; None where the target uses no device.

        Args:
            scope: Makes a scope of a name.
            names: Of the scope around everything, and of the one inside around warming up.
        """

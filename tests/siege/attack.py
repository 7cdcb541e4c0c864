"""The interface of attacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from random import Random


class BreachError(Exception):
    """A defect, described in a line."""


@dataclass
class Trial:
    """One attempt of an attack.

    Args:
        dice: Seeded by the campaign's seed, the attack and the number of the attempt.
        folder: An empty folder. It is kept if the attempt finds something.
        seconds: The limit of an attempt that has no end of its own.
        patience: The limit of a command, as a multiple of its usual time.
        count: How often something was tried.
    """

    dice: Random
    folder: Path
    seconds: float
    patience: int = 1
    count: int = field(default=0)


class Attack(ABC):
    """One way to do harm.

    Attributes:
        name: Its name on the command line and in the table.
        about: A line that describes it.
        share: Its weight when the time is shared out.
        lanes: The most processes that make attempts at a time.
    """

    name: str
    about: str
    share: float = 1.0
    lanes: int = 1

    def prepare(self, folder: Path) -> None:  # noqa: B027 - most need nothing
        """Get ready, once in each process; the folder stays until the process ends."""

    @abstractmethod
    def attempt(self, trial: Trial) -> None:
        """Try it once or more often.

        Raises:
            BreachError: A defect was found.
        """

    def close(self) -> None:  # noqa: B027 - same
        """Put away what `prepare` made."""

"""What an attack is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from random import Random


class BreachError(Exception):
    """Something is not as it should be: what, in a line."""


@dataclass
class Trial:
    """One attempt of an attack.

    Args:
        dice: Seeded by the campaign's seed, the attack and the number of the attempt.
        folder: An empty folder. It is kept where the attempt finds something.
        seconds: How long an attempt may go on that could go on for ever.
        patience: How many times as long as it should take a command may run.
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
        about: What is tried, in a line.
        share: Its part of the time, beside the shares of the others.
        lanes: How many processes at most make attempts of it at a time.
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
            BreachError: Something is not as it should be.
        """

    def close(self) -> None:  # noqa: B027 - same
        """Put away what `prepare` made."""

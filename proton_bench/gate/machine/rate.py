"""The rate of an event, with the bounds that few trials allow."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import special

__all__ = ["Rate"]


@dataclass(frozen=True, slots=True)
class Rate:
    """Events in a number of trials."""

    events: int
    trials: int

    @property
    def value(self) -> float:
        """The share of trials with the event, 0 of none."""
        return self.events / self.trials if self.trials else 0.0

    def bounds(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the exact interval of Clopper, Pearson 1934 (Biometrika 26:404)."""
        if not self.trials:
            return 0.0, 1.0
        tail = (1.0 - confidence) / 2.0
        misses = self.trials - self.events
        low = float(special.betaincinv(self.events, misses + 1, tail)) if self.events else 0.0
        high = float(special.betainccinv(self.events + 1, misses, tail)) if misses else 1.0
        return low, high

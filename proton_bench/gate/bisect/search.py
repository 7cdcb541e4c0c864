"""A binary search with noisy answers: which revision is the first bad one?

Every revision ``c`` may be it. If it is, exactly the revisions that contain ``c`` are slower. With
``D`` the logarithm of candidate over good of one pair of processes::

    D = offset + (effect if the revision is slower else 0) + tau * order + s * t[4]
    offset ~ N(0, (effect / 6)^2)       what else a revision changes, the same for all its pairs

    P(c | all D)  ~  prior(c) * sum over effect and s of product over revisions r of P(D of r | c)

The pairs of the proof count as pairs of the bad revision, so they say how large the effect and the
noise are. The t distribution keeps an outlier from deciding, and the offset keeps many pairs of one
revision from being more certain than the revision itself. The next pair is one of the revision
whose answer is known least, which is Bayes' rule as near to 1/2 as possible (Burnashev, Zigangirov
1974; Waeber, Frazier, Henderson 2013, "Bisection search with noisy responses", SIAM J. Control
Optim. 51:2261), with the graph of a history in place of a line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

from proton_bench.gate.bisect.history import History

__all__ = ["CERTAIN", "UNLIKELY", "Search", "Seen", "Signal"]

Numbers = npt.NDArray[np.float64]

# Posterior of one revision at which the search ends.
CERTAIN = 0.99
# Prior of a revision that changes no code that runs, against 1 of others; and the factor on a
# revision whose only difference is between two that run the same code.
UNLIKELY = 1e-4
# A revision is measured until it is good or bad with this probability.
_CLEAR = 0.95
# An answer known better than this is not worth a pair.
_USELESS = 0.999
# Least pairs of the answer and of its parents.
_CONFIRMING = 2
_FREEDOM = 4.0
# Other changes of a revision, as a part of the effect.
_OFFSET = 1.0 / 6.0
_OFFSETS = np.linspace(-4.0, 4.0, 81)
_EFFECTS = np.linspace(0.4, 2.0, 9)
_SPREADS = np.geomspace(0.25, 4.0, 9)
# Least standard deviation of a pair, as a part of the effect.
_LEAST_SPREAD = 0.02
# Standard deviation of a difference of medians of three, halved, over that of one value.
_ORDER_ERROR = 0.47


@dataclass(frozen=True, slots=True)
class Seen:
    """One pair.

    Attributes:
        difference: ``ln`` of the revision's value over that of the good revision.
        base_first: Whether the good revision ran first.
    """

    difference: float
    base_first: bool

    @property
    def order(self) -> float:
        """+1 if the good revision ran first, else -1."""
        return 1.0 if self.base_first else -1.0


@dataclass(frozen=True, slots=True)
class Signal:
    """What distinguishes bad revisions from good ones, on the log scale. See `of_proof`.

    Attributes:
        effect: The regression.
        spread: Standard deviation of one pair.
        order_effect: What running second costs.
    """

    effect: float
    spread: float
    order_effect: float = 0.0

    @classmethod
    def of_proof(cls, pairs: Sequence[Seen]) -> Signal:
        """Return first estimates, which outliers hardly affect, from pairs of the bad revision."""
        sides = [[each.difference for each in pairs if each.order == sign] for sign in (1.0, -1.0)]
        if not all(sides):
            values = np.array([each.difference for each in pairs])
            effect, order = float(np.median(values)), 0.0
        else:
            first, second = (float(np.median(side)) for side in sides)
            effect, order = (first + second) / 2.0, (first - second) / 2.0
        rest = [abs(each.difference - effect - order * each.order) for each in pairs]
        # The median of each order leaves one residual of 0.
        spread = 1.48 * float(np.sort(rest)[(len(rest) + min(2, len(rest) - 1)) // 2])
        spread = max(spread, _LEAST_SPREAD * abs(effect), 1e-9)
        certain = max(0.0, 1.0 - (_ORDER_ERROR * spread / order) ** 2) if order else 0.0
        return cls(effect, spread, certain * order)

    @property
    def most_pairs(self) -> int:
        """Pairs of one revision after which more of them hardly help."""
        wanted = math.ceil(60.0 * (self.spread / self.effect) ** 2)
        return min(max(24, wanted), 60)

    @property
    def spreads(self) -> Numbers:
        """Standard deviations of one pair that are considered."""
        found: Numbers = self.spread * _SPREADS
        return found

    def likelihoods(self, pairs: Sequence[Seen]) -> tuple[Numbers, Numbers]:
        """Return ``ln P(pairs)`` if their revision is good, and if it is bad.

        Each has one line for each effect and one column for each spread that is considered.
        """
        clean = np.array([each.difference - self.order_effect * each.order for each in pairs])
        effects = self.effect * _EFFECTS
        good, bad = (
            self._marginal(clean[None, :] - middles[:, None], effects)
            for middles in (np.zeros_like(effects), effects)
        )
        return good, bad

    def _marginal(self, residuals: Numbers, effects: Numbers) -> Numbers:
        """Return ``ln P`` of residuals, one line for each effect, over all offsets."""
        spreads = self.spreads
        offsets = np.abs(effects)[:, None] * _OFFSET * _OFFSETS
        # Axes: effect, spread, offset, pair.
        distance = residuals[:, None, None, :] - offsets[:, None, :, None]
        scaled = distance / spreads[None, :, None, None]
        logs = np.log1p(scaled**2 / _FREEDOM).sum(axis=-1) * (-(_FREEDOM + 1.0) / 2.0)
        summed = special.logsumexp(logs - 0.5 * _OFFSETS**2, axis=-1)
        found: Numbers = summed - residuals.shape[1] * np.log(spreads)
        return found


@dataclass
class Search:
    """The revisions, and what was seen of them.

    Attributes:
        history: The revisions.
        proof: Pairs of the bad revision.
        signal: What is looked for.
        seen: Pairs of the other measured revisions.
        skipped: Revisions that cannot be measured.
    """

    history: History
    proof: Sequence[Seen]
    signal: Signal = field(init=False)
    seen: dict[int, list[Seen]] = field(default_factory=dict, init=False)
    skipped: set[int] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.signal = Signal.of_proof(self.proof)
        self._prior: Numbers = np.ones(len(self.history))
        self._same: dict[int, int | None] = {}
        self._current: int | None = None
        _, self._base = self.signal.likelihoods(self.proof)
        self._known: dict[int, tuple[Numbers, Numbers]] = {}

    def weigh(self, prior: Sequence[float] | Numbers) -> None:
        """Set the prior of each revision, up to a common factor."""
        self._prior = np.asarray(prior, dtype=np.float64)

    def saw(self, revision: int, pair: Seen) -> None:
        """Add a pair of a revision."""
        self.seen.setdefault(revision, []).append(pair)
        self._known[revision] = self.signal.likelihoods(self.seen[revision])

    def skip(self, revision: int) -> None:
        """Note that a revision cannot be measured."""
        self.skipped.add(revision)

    def same(self, revision: int, other: int | None) -> None:
        """Note that a revision runs the same code as another one; None is the good revision."""
        self._same[revision] = other

    def posterior(self) -> Numbers:
        """Return for each revision the probability that it is the first bad one."""
        found: Numbers = self._weights().sum(axis=(1, 2))
        return found

    def estimate(self, revision: int) -> tuple[float, float]:
        """Return the change of a measured revision, and half of its 90 % interval.

        Both are on the log scale; the noise is that of all pairs, or of its own if these differ
        more.
        """
        order = self.signal.order_effect
        clean = [each.difference - order * each.order for each in self.seen[revision]]
        spread = float(self._weights().sum(axis=(0, 1)) @ self.signal.spreads)
        spread = max(spread, float(np.std(clean, ddof=1)) if len(clean) > 1 else 0.0)
        reach = float(special.stdtrit(_FREEDOM, 0.95)) * spread / math.sqrt(len(clean))
        return float(np.mean(clean)), reach

    def _weights(self) -> Numbers:
        """Return the probability of each revision with each effect and each spread."""
        contains = self.history.contains
        logs = np.log(self._prior)[:, None, None] + self._base[None]
        for revision, (good, bad) in self._known.items():
            logs += np.where(contains[revision][:, None, None], bad, good)
        for revision, other in self._same.items():
            theirs = contains[other] if other is not None else np.zeros(len(logs), dtype=np.bool_)
            logs[contains[revision] != theirs] += math.log(UNLIKELY)
        weights = np.exp(logs - logs.max())
        found: Numbers = weights / weights.sum()
        return found

    def slower(self) -> Numbers:
        """Return for each revision the probability that it is slower than the good one."""
        posterior = self.posterior()
        likely = np.flatnonzero(posterior > 0.0)
        found: Numbers = self.history.contains[:, likely] @ posterior[likely]
        return found

    def next(self) -> int | None:
        """Return the revision of which a pair says most, None if the search has ended."""
        posterior = self.posterior()
        best = int(posterior.argmax())
        is_found = posterior[best] >= CERTAIN
        self._current = self._unconfirmed(best) if is_found else self._least_known()
        return self._current

    def answer(self) -> tuple[int, ...]:
        """Return the revisions one of which is the first bad one, the most likely first.

        Their probabilities add up to `CERTAIN`; a single one is the answer.
        """
        posterior = self.posterior()
        order = np.argsort(-posterior, kind="stable")
        count = int(np.searchsorted(np.cumsum(posterior[order]), CERTAIN)) + 1
        return tuple(order[:count].tolist())

    def _can_measure(self, revision: int) -> bool:
        is_open = revision != self.history.bad and revision not in self.skipped
        return is_open and len(self.seen.get(revision, ())) < self.signal.most_pairs

    def _unconfirmed(self, best: int) -> int | None:
        """Return which of a revision and its parents has too few pairs."""
        for revision in (best, *self.history.revisions[best].parents):
            few = len(self.seen.get(revision, ())) < _CONFIRMING and revision not in self._same
            if few and self._can_measure(revision):
                return revision
        return None

    def _least_known(self) -> int | None:
        slower = self.slower()
        current = self._current
        is_open = current is not None and self._can_measure(current)
        if is_open and 1.0 - _CLEAR < slower[current] < _CLEAR:
            return current  # another revision would have to be prepared first
        for revision in np.argsort(np.abs(slower - 0.5), kind="stable").tolist():
            if not 1.0 - _USELESS < slower[revision] < _USELESS:
                return None
            if self._can_measure(revision):
                return int(revision)
        return None

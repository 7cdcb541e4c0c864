"""Threshold expressions: what may get worse by how much, and where.

::

    EXPR   := [SELECTOR '@'] [METRIC ':'] AMOUNT {'&' AMOUNT}
    METRIC := median mean min pNN tail total wall calls cycles instructions mem flops gbps
    AMOUNT := NUMBER ('%' | 'ns' | 'us' | 'ms' | 's' | '')

``5%``, ``median:2.5%&1us``, ``fwd/**/softmax*@p95:10%``, ``fwd@total:3%`` and ``calls:0`` are such
expressions. Without a metric an expression is about everything that is gated by default. A bare
number for a time is in seconds, as in pytest-benchmark's ``--benchmark-compare-fail``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from proton_bench.errors import UsageError
from proton_bench.support.text import did_you_mean

__all__ = [
    "LOOSER",
    "METRICS",
    "OTHER_UNITS",
    "TAIL",
    "Amount",
    "Threshold",
    "parse_threshold",
]

METRICS = (
    "median",
    "mean",
    "min",
    "pNN",
    "tail",
    "total",
    "wall",
    "calls",
    "cycles",
    "instructions",
    "mem",
    "flops",
    "gbps",
)
# Mean of the slowest tenth of the launches.
TAIL = "tail"
# Metrics that say how long one launch takes.
_LAUNCH_METRICS = frozenset({"median", "mean", "min", TAIL})
_TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_UNITS = ("%", *_TIMES)
# Metrics that are not times, and their units.
OTHER_UNITS = {
    "calls": "",
    "cycles": "cycles",
    "instructions": "instructions",
    "mem": "",
    "flops": "flop/s",
    "gbps": "GB/s",
}
_RATES = frozenset({"flops", "gbps"})
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_UNIT = re.compile(r"[^&\s]*")
_MOST_AMOUNTS, _LONGEST_SHOWN = 8, 400
# What earlier versions had, and what says the same now.
_REMOVED = dict.fromkeys(("max", "stddev", "iqr", "mad"), "tail or a percentile such as p95")
# Noise of the host is larger than that of typical launches.
LOOSER = 3.0
_MEDIAN = 50.0


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit: ``%``, ``ns``, ``us``, ``ms``, ``s`` or "" for a bare one."""

    number: float
    unit: str = ""

    @property
    def is_relative(self) -> bool:
        """Whether it is relative to the base."""
        return self.unit == "%"

    @property
    def ratio(self) -> float:
        """The share by which it may grow: 0.05 for ``5%``."""
        return self.number / 100.0

    def absolute(self, bare: float) -> float:
        """Return it in nanoseconds, or in the metric's own unit.

        Args:
            bare: Value of a number without a unit.
        """
        return self.number * _TIMES.get(self.unit, bare)

    def __str__(self) -> str:
        return f"{self.number!r}".removesuffix(".0") + self.unit


@dataclass(frozen=True, slots=True)
class Threshold:
    """How much a metric of some paths may get worse.

    Attributes:
        metric: One of `METRICS`, with a number for ``pNN``; "" for all that is gated by default.
        amounts: All of them have to be reached.
        selector: Glob of call paths, "" for all large enough ones.
        is_written: Whether a user wrote it for this metric.
        is_offered: Whether only the new side of a gate has it, such as the marker of a test in a
            pull request: then it replaces no stricter one.
    """

    metric: str
    amounts: tuple[Amount, ...]
    selector: str = ""
    is_written: bool = field(default=True, compare=False)
    is_offered: bool = field(default=False, compare=False)

    @property
    def is_structural(self) -> bool:
        """Whether it is about launches, which are exact and need no statistics."""
        return self.metric == "calls"

    @property
    def is_about_launches(self) -> bool:
        """Whether it is about the time of one launch."""
        return self.metric in _LAUNCH_METRICS or _PERCENTILE.fullmatch(self.metric) is not None

    @property
    def leaves_slow_out(self) -> bool:
        """Whether it is about the fastest launches, which other work on the machine leaves alone.

        So are the minimum and percentiles below the median.
        """
        percentile = _PERCENTILE.fullmatch(self.metric)
        return self.metric == "min" or (percentile is not None and float(percentile[1]) < _MEDIAN)

    def loosens(self, other: Threshold) -> bool:
        """Return whether it allows what another threshold of the same metric does not."""
        return (self.ratio or 0.0) > (other.ratio or 0.0) or (self.absolute or 0.0) > (
            other.absolute or 0.0
        )

    @property
    def direction(self) -> int:
        """+1 if more is worse, -1 if less is, 0 if any change is."""
        return 0 if self.is_structural else -1 if self.metric in _RATES else 1

    def looser(self, metric: str) -> Threshold:
        """Return the threshold for a metric that is noisier than the time of typical launches."""
        amounts = tuple(Amount(round(LOOSER * e.number, 9), e.unit) for e in self.amounts)
        return replace(self, metric=metric, amounts=amounts, is_written=False)

    def expanded(self) -> tuple[Threshold, ...]:
        """Return one threshold for each metric that it is about."""
        if self.metric:
            return (self,)
        return (
            replace(self, metric="median"),
            replace(self, metric="total"),
            self.looser("wall"),
        )

    @property
    def ratio(self) -> float | None:
        """The greatest of the relative amounts, None without one."""
        return max((each.ratio for each in self.amounts if each.is_relative), default=None)

    @property
    def absolute(self) -> float | None:
        """The greatest absolute amount, in ns for times, None without one."""
        bare = 1.0 if self.metric in OTHER_UNITS else _TIMES["s"]
        found = (each.absolute(bare) for each in self.amounts if not each.is_relative)
        return max(found, default=None)

    def __str__(self) -> str:
        where = f"{self.selector}@" if self.selector else ""
        metric = f"{self.metric}:" if self.metric else ""
        return f"{where}{metric}{'&'.join(map(str, self.amounts))}"


def parse_threshold(text: str) -> Threshold:
    """Parse a threshold expression.

    Raises:
        UsageError: It is invalid; the message shows the column.
    """
    return _Reader(text).threshold()


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def threshold(self) -> Threshold:
        selector, mark, _ = self._text.rpartition("@")
        if mark and not selector:
            raise self._error("a selector is missing before '@'", 0)
        self._at = len(selector) + len(mark)
        metric = self._metric() if _NUMBER.match(self._text, self._at) is None else ""
        if metric:
            self._skip(":", f"':' and a number follow {metric!r}, as in {metric}:5%")
        if self._here() in {"+", "-", "~"}:
            raise self._error(
                "thresholds have no signs: they are about getting worse, so write only the number"
            )
        amounts = [self._amount(metric)]
        while self._here() == "&" and len(amounts) < _MOST_AMOUNTS:
            self._at += 1
            amounts.append(self._amount(metric))
        if self._at < len(self._text):
            raise self._error("only '&' and another amount may follow here")
        return Threshold(metric, tuple(amounts), selector)

    def _metric(self) -> str:
        found = _NAME.match(self._text, self._at)
        name = found[0] if found else ""
        if name in _REMOVED:
            raise self._error(f"{name} is not a metric any more: use {_REMOVED[name]}")
        if name not in METRICS or name == "pNN":
            percentile = _PERCENTILE.fullmatch(name)
            if percentile is None or float(percentile[1]) == 0.0:
                what = f"{name!r} is not a metric" if name else "a metric is missing here"
                choices = f"; metrics are {', '.join(METRICS)}, NN from 1 to 99"
                raise self._error(f"{what}{did_you_mean(name, METRICS) or choices}")
        self._at += len(name)
        return name

    def _amount(self, metric: str) -> Amount:
        start = self._at
        found = _NUMBER.match(self._text, start)
        if found is None:
            raise self._error("a number is missing here, such as 5 in 5%")
        self._at = found.end()
        number = float(found[0])
        unit = _UNIT.match(self._text, self._at)
        name = unit[0] if unit else ""
        if name == "x":
            raise self._error("factors are not amounts any more: write 5% for 1.05x")
        if name and name not in _UNITS:
            choices = did_you_mean(name, _UNITS) or f"; units are {', '.join(_UNITS)}"
            raise self._error(f"{name!r} is not a unit{choices}")
        if name in _TIMES and metric in OTHER_UNITS:
            raise self._error(f"{metric} is not a time, so it has no {name}")
        self._at += len(name)
        self._check(metric, Amount(number, name), start)
        return Amount(number, name)

    def _check(self, metric: str, amount: Amount, column: int) -> None:
        if amount.number > 1e15:
            raise self._error("the number is too large", column)
        if not metric and not amount.is_relative:
            raise self._error("without a metric an amount is a share, such as 5%", column)
        if amount.number == 0.0 and metric != "calls":
            raise self._error("0 leaves no room for noise; only calls may have 0", column)

    def _here(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, character: str, wanted: str) -> None:
        if self._here() != character:
            raise self._error(wanted)
        self._at += 1

    def _error(self, what: str, column: int | None = None) -> UsageError:
        at = self._at if column is None else column
        if len(self._text) > _LONGEST_SHOWN:
            return UsageError(f"threshold {self._text[:80]!r}..., column {at + 1}: {what}")
        error = UsageError(f"threshold {self._text!r}, column {at + 1}: {what}")
        error.add_note(f"  {self._text}\n  {' ' * at}^")
        return error

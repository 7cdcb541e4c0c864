"""Threshold expressions: what may change by how much, and where.

::

    EXPR   := [SELECTOR '@'] METRIC ':' ['+' | '-' | '~'] AMOUNT {'&' AMOUNT}
    METRIC := min max mean median stddev iqr mad pNN total calls cycles mem flops gbps
    AMOUNT := NUMBER ('%' | 'x' | 'ns' | 'us' | 'ms' | 's' | '')

``mean:5%``, ``median:2.5%&1us``, ``fwd/**/softmax*@p95:10%`` and ``calls:0`` are such expressions.
All expressions of pytest-benchmark's ``--benchmark-compare-fail`` are valid, except 0 for anything
but calls; a bare number for a time is in seconds, as there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from proton_bench.errors import UsageError

__all__ = ["METRICS", "Amount", "Sign", "Threshold", "parse_threshold"]

METRICS = (
    "min",
    "max",
    "mean",
    "median",
    "stddev",
    "iqr",
    "mad",
    "pNN",
    "total",
    "calls",
    "cycles",
    "mem",
    "flops",
    "gbps",
)
_TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_UNITS = ("%", "x", *_TIMES)
_NOT_TIMES = frozenset({"calls", "cycles", "mem", "flops", "gbps"})
_RATES = frozenset({"flops", "gbps"})
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_UNIT = re.compile(r"[^&\s]*")
_MOST_AMOUNTS, _LONGEST_SHOWN = 8, 400


class Sign(StrEnum):
    """In which direction a change counts."""

    WORSE = ""
    MORE = "+"
    LESS = "-"
    EITHER = "~"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit: ``%``, ``x``, ``ns``, ``us``, ``ms``, ``s`` or "" for a bare one."""

    number: float
    unit: str = ""

    @property
    def is_relative(self) -> bool:
        """Whether it is relative to the base."""
        return self.unit in {"%", "x"}

    @property
    def ratio(self) -> float:
        """The share by which it may grow: 0.05 for ``5%`` and ``1.05x``."""
        return self.number / 100.0 if self.unit == "%" else self.number - 1.0

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
    """How much a metric of some paths may change.

    Attributes:
        metric: One of `METRICS`, with a number for ``pNN``.
        amounts: All of them have to be reached.
        sign: The direction that counts.
        selector: Glob of call paths, "" for all large enough ones.
        is_written: Whether a user wrote it; then the default floors do not apply.
    """

    metric: str
    amounts: tuple[Amount, ...]
    sign: Sign = Sign.WORSE
    selector: str = ""
    is_written: bool = field(default=True, compare=False)

    @property
    def is_structural(self) -> bool:
        """Whether it is about launches, which are exact and need no statistics."""
        return self.metric == "calls"

    @property
    def direction(self) -> int:
        """+1 if more is worse, -1 if less is, 0 if any change is."""
        if self.sign is Sign.WORSE:
            return -1 if self.metric in _RATES else 0 if self.is_structural else 1
        return {Sign.MORE: 1, Sign.LESS: -1, Sign.EITHER: 0}[self.sign]

    @property
    def ratio(self) -> float | None:
        """The greatest of the relative amounts, None without one."""
        return max((each.ratio for each in self.amounts if each.is_relative), default=None)

    @property
    def absolute(self) -> float | None:
        """The greatest absolute amount, in ns for times, None without one."""
        bare = 1.0 if self.metric in _NOT_TIMES else _TIMES["s"]
        found = (each.absolute(bare) for each in self.amounts if not each.is_relative)
        return max(found, default=None)

    def __str__(self) -> str:
        where = f"{self.selector}@" if self.selector else ""
        return f"{where}{self.metric}:{self.sign}{'&'.join(map(str, self.amounts))}"


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
        metric = self._metric()
        self._skip(":", f"':' and a number follow {metric!r}, as in {metric}:5%")
        sign = Sign(self._text[self._at]) if self._here() in {"+", "-", "~"} else Sign.WORSE
        self._at += len(sign.value)
        amounts = [self._amount(metric)]
        while self._here() == "&" and len(amounts) < _MOST_AMOUNTS:
            self._at += 1
            amounts.append(self._amount(metric))
        if self._at < len(self._text):
            raise self._error("only '&' and another amount may follow here")
        return Threshold(metric, tuple(amounts), sign, selector)

    def _metric(self) -> str:
        found = _NAME.match(self._text, self._at)
        name = found[0] if found else ""
        if name not in METRICS or name == "pNN":
            percentile = _PERCENTILE.fullmatch(name)
            if percentile is None or float(percentile[1]) == 0.0:
                said = f"{name!r} is not a metric" if name else "a metric is missing here"
                raise self._error(f"{said}; metrics are {', '.join(METRICS)}, NN from 1 to 99")
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
        if name and name not in _UNITS:
            raise self._error(f"{name!r} is not an unit; units are {', '.join(_UNITS)}")
        if name in _TIMES and metric in _NOT_TIMES:
            raise self._error(f"{metric} is not a time, so it has no {name}")
        self._at += len(name)
        self._check(metric, Amount(number, name), start)
        return Amount(number, name)

    def _check(self, metric: str, amount: Amount, column: int) -> None:
        if amount.number > 1e15:
            raise self._error("the number is too large", column)
        if amount.unit == "x" and amount.number <= 1.0:
            raise self._error("a factor is more than 1, as in 1.05x", column)
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

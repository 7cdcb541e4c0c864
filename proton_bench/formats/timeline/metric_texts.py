"""Metrics of scopes that events of a timeline hold as texts."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any

from proton_bench.formats.base import corrupt
from proton_bench.formats.limits import take_bytes
from proton_bench.formats.path_tree import PathTree
from proton_bench.model.metrics.metric import Aggregation

__all__ = ["MetricTexts"]

_SUFFIXES = {"(exc)": Aggregation.EXCLUSIVE, "(pty)": Aggregation.PROPERTY}
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_MAX_DIGITS = 400
_BYTES_OF_NUMBER = 64
_MOST_KNOWN = 4096  # the same names and values come again and again


class MetricTexts:
    """Adds metrics of events to rows; ``(exc)`` and ``(pty)`` in a name say how they add up.

    Args:
        tree: Where the rows are.
        source: Name of the file, for messages.
    """

    def __init__(self, tree: PathTree, source: str) -> None:
        self._tree = tree
        self._source = source

    def add(self, row: int, metrics: Any) -> None:
        """Add the metrics of an event.

        Args:
            row: Row of the event's scope or kernel.
            metrics: Values by name, also as texts of numbers and vectors; None for none.

        Raises:
            ProfileFormatError: They are not a map, or a metric changes its type.
        """
        if metrics is None:
            return
        if not isinstance(metrics, dict):
            raise corrupt(self._source, "the metrics of an event are not a map")
        for key, text in metrics.items():
            name, aggregation = _name_and_aggregation(key)
            value, before = _value(text), self._tree.value(row, name)
            if value is None:
                continue
            if isinstance(value, str) and aggregation is Aggregation.INCLUSIVE:
                aggregation = Aggregation.PROPERTY  # of timelines that other tools wrote
            is_replaced = aggregation is Aggregation.PROPERTY or isinstance(before, str)
            if isinstance(value, str) or is_replaced:
                self._tree.declare(name, aggregation)
                self._tree.put(row, name, value)
            elif before is not None and not _are_alike(before, value):
                raise corrupt(self._source, f"metric {name!r} changes its type")
            elif isinstance(value, tuple):
                take_bytes(_BYTES_OF_NUMBER * len(value))  # a few bytes may repeat it
                self._tree.put(row, name, _vector_sum(before or (), value))
            else:
                self._tree.declare(name, aggregation)
                self._tree.add(row, name, value)


def _vector_sum(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    longer, shorter = sorted((one, other), key=len, reverse=True)
    padded = (*shorter, *(0 for _ in longer[len(shorter) :]))
    return tuple(left + right for left, right in zip(longer, padded, strict=True))


@lru_cache(maxsize=_MOST_KNOWN)
def _name_and_aggregation(key: str) -> tuple[str, Aggregation]:
    for suffix, meant in _SUFFIXES.items():
        if key.endswith(suffix):
            return key.removesuffix(suffix).rstrip(), meant
    return key, Aggregation.INCLUSIVE


def _are_alike(one: Any, other: Any) -> bool:
    return isinstance(one, tuple) == isinstance(other, tuple)


def _value(text: Any) -> int | float | str | tuple[float, ...] | None:
    """Return what a metric's text stands for; None for NaN and infinity, which are not values."""
    if isinstance(text, str):
        return _value_of_text(text)
    return _finite(text) if isinstance(text, int | float) else None


@lru_cache(maxsize=_MOST_KNOWN)
def _value_of_text(text: str) -> int | float | str | tuple[float, ...] | None:
    if text in {"nan", "-nan", "inf", "-inf"}:
        return None
    if _NUMBER.fullmatch(text) and len(text) < _MAX_DIGITS:
        return _finite(int(text) if text.lstrip("-").isdigit() else float(text))
    if text.startswith("[") and text.endswith("]"):
        parts = [_value(part) for part in text[1:-1].split(",")] if len(text) > 2 else []
        if all(isinstance(part, int | float) for part in parts):
            return tuple(part for part in parts if isinstance(part, int | float))
    return text


def _finite(number: float) -> float | None:
    """Return a number that floats hold, or None."""
    return number if abs(number) <= sys.float_info.max else None

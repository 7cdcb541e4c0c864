"""Metric columns: one value per row and metric, or none."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.model.arrays import Array, Integers, Mask
from proton_bench.model.frame import StringTable

MetricValue = int | float | str | tuple[int, ...] | tuple[float, ...]

_INT64 = range(-(2**63), 2**63)
_NUMBERS = {int, bool, float}
_SEQUENCES = {list, tuple}


class Aggregation(StrEnum):
    """How a metric adds up: over the subtree, on the row alone, or not at all."""

    INCLUSIVE = "inc"
    EXCLUSIVE = "exc"
    PROPERTY = "pty"


class ValueKind(StrEnum):
    """The type of a column's values."""

    INT = "int"
    FLOAT = "float"
    STR = "str"
    INT_VECTOR = "int_vector"
    FLOAT_VECTOR = "float_vector"

    @property
    def is_vector(self) -> bool:
        """Whether each value is a sequence of numbers."""
        return self in {ValueKind.INT_VECTOR, ValueKind.FLOAT_VECTOR}

    @property
    def is_number(self) -> bool:
        """Whether each value is one number."""
        return self in {ValueKind.INT, ValueKind.FLOAT}

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type of the elements; strings are indexes of the string table."""
        if self is ValueKind.STR:
            return np.dtype("<i4")
        return np.dtype("<i8" if self in {ValueKind.INT, ValueKind.INT_VECTOR} else "<f8")


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """The name of a metric, with its unit as in ``time (ns)``, and how it adds up."""

    name: str
    aggregation: Aggregation = Aggregation.INCLUSIVE

    @property
    def base(self) -> str:
        """The name without its unit."""
        return _base_and_unit(self.name)[0]

    @property
    def unit(self) -> str:
        """The unit in the trailing parentheses, or ""."""
        return _base_and_unit(self.name)[1]


@functools.lru_cache(maxsize=4096)
def _base_and_unit(name: str) -> tuple[str, str]:
    """Split a name: ``time`` and ``ns`` of ``time (ns)``."""
    text = name.rstrip()
    opening = text.rfind("(")
    base, unit = text[: max(opening, 0)].rstrip(), text[opening + 1 : -1]
    return (base, unit) if base and text.endswith(")") and ")" not in unit else (name, "")


@dataclass(frozen=True, slots=True, eq=False)
class MetricColumn:
    """The values of one metric.

    Attributes:
        spec: Name and aggregation.
        kind: Type of the values.
        values: One element per row (0, or -1 for strings, where not valid); for vectors all
            elements one after the other. Strings are indexes of ``strings``.
        valid: Whether the row has a value.
        offsets: For vectors, int64[rows + 1]: row i owns ``values[offsets[i]:offsets[i + 1]]``.
        strings: For strings, the string table of the profile.
    """

    spec: MetricSpec
    kind: ValueKind
    values: Array
    valid: Mask
    offsets: Integers | None = None
    strings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.valid)

    @property
    def known(self) -> Mask:
        """Which rows have a number; NaN and infinity do not count, as in sums."""
        known: Mask = self.valid & np.isfinite(self.values)
        return known

    def get(self, row: int) -> MetricValue | None:
        """Return the value of the row as a plain Python object, or None."""
        if not self.valid[row]:
            return None
        if self.offsets is not None:
            return tuple(self.values[self.offsets[row] : self.offsets[row + 1]].tolist())
        value: int | float = self.values[row].item()
        return self.strings[int(value)] if self.kind is ValueKind.STR else value

    def to_list(self) -> list[MetricValue | None]:
        """Return every row's value, None for missing ones."""
        if self.offsets is not None:
            return [self.get(row) for row in range(len(self))]
        values = self.values.tolist()
        if self.kind is ValueKind.STR:
            return [
                self.strings[value] if valid else None
                for value, valid in zip(values, self.valid.tolist(), strict=True)
            ]
        if bool(self.valid.all()):
            return values  # type: ignore[no-any-return]
        return [
            value if valid else None
            for value, valid in zip(values, self.valid.tolist(), strict=True)
        ]

    def self_check(self, rows: int) -> None:
        """Raise ProfileFormatError unless the column fits a profile with that many rows."""
        name = self.spec.name
        if len(self.valid) != rows:
            raise ProfileFormatError(f"metric {name!r} has {len(self.valid)} rows, not {rows}")
        if self.values.dtype != self.kind.dtype:
            raise ProfileFormatError(f"metric {name!r} holds {self.values.dtype}, not {self.kind}")
        if self.kind.is_vector:
            self._check_offsets(rows)
        elif len(self.values) != rows:
            raise ProfileFormatError(f"metric {name!r} has {len(self.values)} values, not {rows}")
        if self.kind is ValueKind.STR:
            used = self.values[self.valid]
            if used.size and not (used.min() >= 0 and used.max() < len(self.strings)):
                raise ProfileFormatError(f"metric {name!r} names a string that does not exist")

    def _check_offsets(self, rows: int) -> None:
        offsets = self.offsets
        if (
            offsets is None
            or len(offsets) != rows + 1
            or offsets[0] != 0
            or offsets[-1] != len(self.values)
            or bool((offsets[1:] < offsets[:-1]).any())
        ):
            raise ProfileFormatError(f"metric {self.spec.name!r} has offsets that do not fit")

    @classmethod
    def from_rows(
        cls,
        spec: MetricSpec,
        rows: Sequence[int],
        values: Sequence[Any],
        *,
        total: int,
        table: StringTable,
    ) -> MetricColumn:
        """Build a column from the rows with a value; None and bool are allowed values.

        Values of several kinds become those of the widest, as a recording makes them: integers
        beyond 64 bits and those beside floats are floats, numbers beside lists are lists of one,
        and anything beside texts is a text.

        Args:
            spec: Name and aggregation.
            rows: Distinct rows, in any order.
            values: One value for each of ``rows``: numbers, strings or sequences of numbers; None
                means no value.
            total: Rows of the profile.
            table: String table that receives the strings. Its texts are attached by the profile.

        Raises:
            MetricError: A value has another type.
        """
        if None in values:
            kept = [i for i, value in enumerate(values) if value is not None]
            rows, values = [rows[i] for i in kept], [values[i] for i in kept]
        kind = _kind_of(spec.name, values)
        values = _widened(values, kind)
        index = np.asarray(rows, dtype=np.int64)
        valid = np.zeros(total, dtype=np.bool_)
        valid[index] = True
        if kind.is_vector:
            flat, offsets = _ragged(spec.name, index, values, kind=kind, total=total)
            return cls(spec, kind, flat, valid, offsets)
        if kind is ValueKind.STR:
            values = [table.index(value) for value in values]
        column = np.full(total, -1 if kind is ValueKind.STR else 0, dtype=kind.dtype)
        column[index] = _numbers(spec.name, values, kind)
        return cls(spec, kind, column, valid)


def _kind_of(name: str, values: Sequence[Any]) -> ValueKind:
    kinds = set(map(type, values))
    elements = {type(each) for value in values if type(value) in _SEQUENCES for each in value}
    unknown = (kinds - _NUMBERS - _SEQUENCES - {str}) | (elements - _NUMBERS - {type(None)})
    if unknown:
        found = ", ".join(sorted(kind.__name__ for kind in unknown))
        raise MetricError(
            f"metric {name!r} holds values of type {found}: a value is a number, a text or a list "
            "of numbers"
        )
    if str in kinds:
        return ValueKind.STR
    is_float = bool((kinds | elements) & {float, type(None)})
    if not kinds & _SEQUENCES:
        return ValueKind.FLOAT if is_float or _is_wide(values) else ValueKind.INT
    flat = [each for v in values for each in (v if type(v) in _SEQUENCES else (v,))]
    return ValueKind.FLOAT_VECTOR if is_float or _is_wide(flat) else ValueKind.INT_VECTOR


def _is_wide(integers: Sequence[int]) -> bool:
    """Whether one needs more than 64 bits."""
    return bool(integers) and (min(integers) not in _INT64 or max(integers) not in _INT64)


def _widened(values: Sequence[Any], kind: ValueKind) -> Sequence[Any]:
    if kind is ValueKind.STR:
        return [each if isinstance(each, str) else str(each) for each in values]
    if kind.is_vector:
        return [each if type(each) in _SEQUENCES else (each,) for each in values]
    return values


def _numbers(name: str, values: Sequence[Any], kind: ValueKind) -> Array:
    # NaN in a vector becomes None in JSON.
    try:
        if kind in {ValueKind.FLOAT, ValueKind.FLOAT_VECTOR} and None in values:
            values = [float("nan") if value is None else value for value in values]
        return np.array(values, dtype=kind.dtype)
    except OverflowError as error:
        raise MetricError(f"metric {name!r} has a number that no float holds") from error


def _ragged(
    name: str,
    index: Integers,
    values: Sequence[Sequence[Any]],
    *,
    kind: ValueKind,
    total: int,
) -> tuple[Array, Integers]:
    order = np.argsort(index, kind="stable").tolist()
    flat = [element for position in order for element in values[position]]
    lengths = np.zeros(total + 1, dtype=np.int64)
    lengths[index + 1] = [len(value) for value in values]
    return _numbers(name, flat, kind), np.cumsum(lengths)

"""Units of counters: values of one metric get one unit, whatever scale each row was printed in."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable

__all__ = ["base_unit", "has_decimal_commas", "is_summable", "number"]

_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SCALED = re.compile(
    r"(?P<prefix>[KMGT]?)(?P<unit>byte|inst|cycle|warp|block|thread|sector|request|hz|Hz|bit)"
    r"(?P<rest>s?(?:/.*)?)"
)
_TIMES = {
    "s": 1e9,
    "second": 1e9,
    "msecond": 1e6,
    "ms": 1e6,
    "usecond": 1e3,
    "us": 1e3,
    "nsecond": 1.0,
    "ns": 1.0,
}
# More than one dot, or not three digits after a comma, is not a group of thousands.
_DECIMAL_COMMA = re.compile(r"-?(\d+(\.\d{3}){2,}(,\d+)?|\d+(\.\d{3})*,(\d{1,2}|\d{4,}))%?")
_BINARY = {"Kibyte": 2**10, "Mibyte": 2**20, "Gibyte": 2**30}
# Units that add up over launches: amounts, not shares, rates or properties of a launch.
_MEANS = (".avg", ".max", ".min", ".pct", "ratio", "rate", "util", "percent", "occupancy")
_AMOUNTS = frozenset({"byte", "inst", "cycle", "ns", "warp", "sector", "request", ""})


@functools.lru_cache(maxsize=1024)
def base_unit(unit: str) -> tuple[str, float]:
    """Return the unit without a prefix of scale, and the factor to it: ``Mbyte/s`` is 1e6 byte/s.

    Units that are not known are kept as they are.
    """
    text = unit.strip()
    if text in _TIMES:
        return "ns", _TIMES[text]
    if text in _BINARY:
        return "byte", float(_BINARY[text])
    match = _SCALED.fullmatch(text)
    if match is None:
        return text, 1.0
    rest = match["rest"].replace("/second", "/s")
    name = "Hz" if match["unit"] in {"hz", "Hz"} else match["unit"]
    return f"{name}{rest}", _PREFIXES[match["prefix"]]


def is_summable(metric: str, unit: str) -> bool:
    """Return whether values of launches add up; else they have a mean.

    Args:
        metric: Name of the counter; with ``.avg``, ``.max`` or a percentage it has a mean.
        unit: Its base unit.
    """
    lower = metric.lower()
    if any(mark in lower for mark in _MEANS):
        return unit == "ns" and "duration" in lower
    if unit == "":
        return metric.isupper() or lower.endswith((".sum", "_sum", "fetchsize", "writesize"))
    return unit in _AMOUNTS


def number(text: str, *, decimal_comma: bool = False) -> float | None:
    """Return the number in a cell, None for none: ``1,234.5``, ``12%``, ``n/a``.

    Args:
        text: The cell.
        decimal_comma: A comma stands before the decimals and dots between thousands.
    """
    cleaned = text.strip().removesuffix("%")
    if decimal_comma:
        cleaned = cleaned.replace(".", "").replace(",", ".")
    elif "," in cleaned:
        cleaned = cleaned.replace(",", "")
    try:
        value = float(cleaned)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def has_decimal_commas(cells: Iterable[str]) -> bool:
    """Return whether a cell can only be read with a decimal comma: ``65,77``."""
    return any(
        _DECIMAL_COMMA.fullmatch(cell) is not None
        for cell in cells
        if "," in cell or cell.count(".") > 1
    )

"""Counts the records of a warp in one run of a kernel, if its TTGIR shows it.

A buffer need not be larger than that, and each program copies its whole buffer to global memory at
its end: for a short program, this is most of what records cost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["most_records"]

_RECORD = re.compile(r"\s*proton\.(record|event)\b")
# The nesting of regions does not show where this control flow may return to.
_UNSTRUCTURED = re.compile(r"^\s*(\^bb\d+|cf\.(cond_)?br\b|cf\.switch\b)", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*tt\.func\b", re.MULTILINE)
_CONSTANT = re.compile(r"^\s*(%\S+) = arith\.constant (-?\d+) : (?:i32|i64|index)\b", re.MULTILINE)
_FOR = re.compile(r"scf\.for (?:unsigned )?%\S+ = (%\S+) to (%\S+) step (%\S+)")
_LOOP = re.compile(r"\bscf\.(while|forall|parallel)\b|^\s*\} do \{")
_MOST = 1 << 20  # beyond that no buffer holds them


@dataclass(frozen=True, slots=True)
class _Region:
    """A region between two braces: how often it runs, None if only the device knows."""

    times: int | None


def most_records(text: str) -> int | None:
    """Return the most records that a warp writes in one run.

    Args:
        text: TTGIR without locations.

    Returns:
        The number; None if it depends on the kernel's arguments.
    """
    if _UNSTRUCTURED.search(text) or len(_FUNCTION.findall(text)) > 1:
        return None
    constants = {match[1]: int(match[2]) for match in _CONSTANT.finditer(text)}
    regions: list[_Region] = []
    count = 0
    for line in text.splitlines():
        if _RECORD.match(line):
            times = _product(regions)
            if times is None or count + times > _MOST:
                return None
            count += times
            continue
        stripped = line.strip()
        if stripped.startswith("}") and regions:
            regions.pop()
        if stripped.endswith("{"):
            regions.append(_Region(_times(line, constants)))
    return count


def _product(regions: list[_Region]) -> int | None:
    product = 1
    for region in regions:
        if region.times is None:
            return None
        product *= region.times
    return product


def _times(line: str, constants: dict[str, int]) -> int | None:
    loop = _FOR.search(line)
    if loop is not None:
        first, last, step = (constants.get(name) for name in loop.groups())
        if first is None or last is None or step is None or step <= 0:
            return None
        return max(0, -(-(last - first) // step))
    return None if _LOOP.search(line) else 1

"""The origin of runs as a table: one line per fact, one cell per run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from proton_bench.model.device import Device
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text

__all__ = ["FactLine", "fact_lines"]

_MAX_LINES = 400
_MAX_TEXT = 2000
_MAX_KEY = 120
_MAX_DEPTH = 6
_TIMES = ("start_time_ns", "end_time_ns")
_MOST_NS = 2.0**63


@dataclass(frozen=True, slots=True)
class FactLine:
    """A fact of each run.

    Attributes:
        name: Such as ``git.revision``.
        texts: Value of each run, "" for none.
        differs: Whether runs differ.
    """

    name: str
    texts: tuple[str, ...]
    differs: bool


def fact_lines(profiles: Sequence[Profile]) -> tuple[FactLine, ...]:
    """Return the facts of the runs, in the order of the first run; at most 400 lines."""
    found = [dict(_facts(profile)) for profile in profiles]
    names = list(dict.fromkeys(name for facts in found for name in facts))
    lines = []
    for name in names[:_MAX_LINES]:
        texts = tuple(_texts(name, [facts.get(name, "") for facts in found]))
        lines.append(FactLine(name, texts, len(set(texts)) > 1))
    if len(names) > _MAX_LINES:
        rest = count_text(len(names) - _MAX_LINES, "further fact is", "further facts are")
        texts = (f"{rest} in the file", *("" for _ in found[1:]))
        lines.append(FactLine("...", texts, differs=False))
    return tuple(lines)


def _facts(profile: Profile) -> Iterator[tuple[str, Any]]:
    for device in profile.devices:
        yield visible(f"device {device.kind}:{device.index}", _MAX_KEY), _device_text(device)
    for key, value in profile.provenance.items():
        yield from _flat(key, value)


def _device_text(device: Device) -> str:
    facts = [f"architecture {device.arch}"] if device.arch else []
    if device.num_sms:
        facts.append(count_text(device.num_sms, "multiprocessor"))
    if device.clock_rate_khz:
        facts.append(f"{device.clock_rate_khz / 1000:.0f} MHz")
    if device.memory_clock_rate_khz and device.bus_width_bits:
        facts.append(f"memory {device.memory_clock_rate_khz / 1000:.0f} MHz")
        facts.append(f"{device.bus_width_bits} bit")
    return visible(", ".join(facts), _MAX_TEXT)


def _flat(key: str, value: Any, depth: int = 1) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value and depth < _MAX_DEPTH:
        for inner, below in value.items():
            yield from _flat(f"{key}.{inner}", below, depth + 1)
    elif isinstance(value, tuple) and any(isinstance(each, Mapping) for each in value):
        for place, each in enumerate(value):
            yield from _flat(f"{key}[{place}]", each, depth + 1)
    elif value is not None and value not in ("", ()):
        yield visible(key, _MAX_KEY), value


def _texts(key: str, values: Sequence[Any]) -> Iterator[str]:
    """Yield the value of one fact for each run; costs of all runs have one unit."""
    unit = Unit.of_times(value for value in values if _is_number(value))
    for value in values:
        if key.endswith("_cost_ns") and _is_number(value):
            yield unit.text(value)
        else:
            yield visible(_text(key, value), _MAX_TEXT)


def _text(key: str, value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if key in _TIMES and _is_number(value):
        # All times within 2**63 ns are valid dates: from 1677 to 2262.
        return f"{datetime.fromtimestamp(value / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return str(value)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < _MOST_NS

"""The marker ``proton_bench(...)``: how to time and gate a test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.rounds.measurement import Device, Plan
from proton_bench.support.text import did_you_mean

MARKER = FIXTURE = "proton_bench"
MARKER_LINE = (
    "proton_bench(rounds=, warmup=, max_time=, flush_l2=, cudagraph=, threshold=, "
    "metric=, device=, flops=, bytes=): a benchmark; without the fixture of this name the whole "
    "test is timed"
)
_PLANNED = frozenset({"rounds", "warmup", "max_time_s", "flush_l2", "cudagraph", "device"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The arguments of a test's markers.

    Attributes:
        threshold: Threshold of the rounds, as for `proton gate`.
        metric: Which clock is gated; None means the GPU's if there is one.
        flops: Floating-point operations of one call.
        bytes: Bytes that one call moves.
        plan: How to time it.
    """

    threshold: str = ""
    metric: Device | None = None
    flops: float = 0.0
    bytes: float = 0.0
    plan: Plan = field(default_factory=Plan)


def is_benchmark(item: pytest.Item) -> bool:
    """Whether a test has the marker or uses the fixture."""
    named = FIXTURE in getattr(item, "fixturenames", ())
    return named or item.get_closest_marker(MARKER) is not None


def read_marker(item: pytest.Item) -> Asked:
    """Return the arguments of a test's markers; the one closest to the test wins.

    Raises:
        UsageError: An argument is unknown or its value invalid; the message names the test.
    """
    found: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(MARKER))):
        if mark.args:
            raise UsageError(
                f"{item.nodeid}: proton_bench takes named arguments only, not {mark.args[0]!r}; "
                f"they are {', '.join(_ARGUMENTS)}"
            )
        found.update(_read(mark.kwargs, item.nodeid))
    planned = {name: found.pop(name) for name in _PLANNED & found.keys()}
    return Asked(plan=Plan(**planned), **found)


def _read(arguments: Mapping[str, Any], test: str) -> dict[str, Any]:
    found = {}
    for name, value in arguments.items():
        if name not in _ARGUMENTS:
            choices = f"; arguments are {', '.join(_ARGUMENTS)}"
            hint = did_you_mean(name, _ARGUMENTS) or choices
            raise UsageError(f"{test}: proton_bench has no argument {name!r}{hint}")
        field_name, read = _ARGUMENTS[name]
        try:
            found[field_name] = read(value)
        except UsageError as error:
            raise UsageError(f"{test}: proton_bench({name}={value!r}): {error}") from None
    return found


# -- values --------------------------------------------------------------------------------------
def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError("expected a text")
    return value


def _threshold(value: object) -> str:
    from proton_bench.gate.policy import parse_threshold

    threshold = parse_threshold(_text(value))
    if threshold.selector:
        raise UsageError("a marker applies to its own test: leave the selector before '@' out")
    return _text(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError("expected a whole number, 1 or more")
    return value


def _positive(value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(value) < math.inf:  # type: ignore[arg-type]
        raise UsageError("expected a number above 0")
    return float(value)  # type: ignore[arg-type]


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError("expected True or False")
    return value


def _clock(choices: Mapping[str, Device]) -> Callable[[object], Device]:
    def read(value: object) -> Device:
        if not isinstance(value, str) or value not in choices:
            raise UsageError(f"expected one of {', '.join(map(repr, choices))}")
        return choices[value]

    return read


_ARGUMENTS: dict[str, tuple[str, Callable[[object], object]]] = {
    "rounds": ("rounds", _count),
    "warmup": ("warmup", _count),
    "max_time": ("max_time_s", _positive),
    "flush_l2": ("flush_l2", _flag),
    "cudagraph": ("cudagraph", _flag),
    "threshold": ("threshold", _threshold),
    "metric": ("metric", _clock({"gpu": Device.CUDA, "cpu": Device.CPU})),
    "device": ("device", _clock({each.value: each for each in Device})),
    "flops": ("flops", _positive),
    "bytes": ("bytes", _positive),
}

"""Options of the mode ``pcsampling``: the period, and how samples are assigned to call paths."""

from __future__ import annotations

from dataclasses import dataclass, field

from proton_bench.errors import UsageError
from proton_bench.plugin import Mode
from proton_bench.support.text import did_you_mean

__all__ = ["MODE", "OPTIONS", "PcSampling", "read_sampling"]

MODE = "pcsampling"
OPTIONS = {
    "interval": "cycles between samples, the nearest power of two from 32; auto (default) chooses",
    "exact": (
        "how samples are assigned to call paths: off (default) by time, scope or launch exactly"
    ),
}
_AUTO = "auto"
# Periods of the hardware's sampler, as powers of two.
_EXPONENTS = range(5, 32)
_MAX_DIGITS = 18  # int refuses thousands of them
# The words of the option, and those of the native collector.
_COLLECTIONS = {"off": "continuous", "scope": "scope", "launch": "launch"}


@dataclass(frozen=True, slots=True)
class PcSampling:
    """How program counters are sampled.

    Attributes:
        collection: ``continuous`` runs all the time; ``scope`` and ``launch`` read the samples at
            the borders of outermost scopes or of launches, which waits for the device there.
        period_exponent: A sample is taken every 2^n cycles; 0 lets the collector choose n.
        asked_cycles: Requested cycles; 0 for none.
    """

    collection: str = "continuous"
    period_exponent: int = 0
    asked_cycles: int = field(default=0, compare=False)


def read_sampling(mode: Mode) -> PcSampling | None:
    """Return how to sample, None for another mode.

    Raises:
        UsageError: An option has an invalid value.
    """
    if mode.name != MODE:
        return None
    exact = mode.options.get("exact", "off").strip().lower()
    if exact not in _COLLECTIONS:
        meant = did_you_mean(exact, _COLLECTIONS) or f"; choose from: {', '.join(_COLLECTIONS)}"
        raise UsageError(f"option 'exact' of mode {mode.text!r} is {exact!r}{meant}")
    cycles = _cycles(mode)
    return PcSampling(_COLLECTIONS[exact], _nearest(cycles) if cycles else 0, cycles)


def _cycles(mode: Mode) -> int:
    """Return the requested cycles, 0 if the collector chooses."""
    text = mode.options.get("interval", _AUTO).strip().lower()
    if text == _AUTO:
        return 0
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    cycles = int(text) if is_number else 0
    if cycles == 0:
        raise UsageError(
            f"option 'interval' of mode {mode.text!r} is {text[:40]!r}: give a positive number of "
            f"cycles, or {_AUTO}"
        )
    return cycles


def _nearest(cycles: int) -> int:
    """Return the exponent of the nearest power of two, the longer period of two equally near."""
    below = cycles.bit_length() - 1
    is_above = 2 * (cycles - (1 << below)) >= 1 << below
    return min(max(below + is_above, _EXPONENTS[0]), _EXPONENTS[-1])

"""Modes as objects, under upstream's submodule name; ``str()`` of one is the mode text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import quote

from proton_bench.errors import UsageError

__all__ = [
    "BUFFER_STRATEGY",
    "BUFFER_TYPE",
    "GRANULARITY",
    "METRIC_TYPE",
    "MMA",
    "SAMPLING_STRATEGY",
    "BaseMode",
    "Default",
    "InstrumentationMode",
    "Optimize",
    "PCSampling",
    "buffer_strategies",
    "buffer_types",
    "encode",
    "exact_choices",
    "granularities",
    "metric_types",
    "optimizations",
    "sampling_strategies",
]


class _Choice(Enum):
    """A value of Triton's compiler, with the name and number of its bindings."""

    def __eq__(self, other: object) -> bool:
        """Equal the compiler's own value too, which has another class."""
        same_kind = type(other).__name__ == type(self).__name__
        return self is other or (same_kind and str(other) == str(self))

    def __hash__(self) -> int:
        return hash(self.name)


class METRIC_TYPE(_Choice):  # noqa: N801 - upstream's name
    """Metric of a scope in a kernel."""

    CYCLE = 0


class SAMPLING_STRATEGY(_Choice):  # noqa: N801 - upstream's name
    """Which warps record."""

    NONE = 0
    SELECTIVE = 1


class GRANULARITY(_Choice):
    """Who records."""

    CTA = 5
    WARP = 1
    WARP_2 = 2
    WARP_4 = 3
    WARP_8 = 4
    WARP_GROUP = 6
    WARP_GROUP_2 = 7
    WARP_GROUP_4 = 8
    WARP_GROUP_8 = 9


class BUFFER_STRATEGY(_Choice):  # noqa: N801 - upstream's name
    """Behavior of a full buffer."""

    CIRCULAR = 0
    FLUSH = 1


class BUFFER_TYPE(_Choice):  # noqa: N801 - upstream's name
    """Memory that records go to first."""

    SHARED = 1
    GLOBAL = 2


def _by_name(choices: type[_Choice]) -> dict[str, Any]:
    return {each.name.lower(): each for each in choices}


metric_types: dict[str, METRIC_TYPE] = _by_name(METRIC_TYPE)
sampling_strategies: dict[str, SAMPLING_STRATEGY] = _by_name(SAMPLING_STRATEGY)
granularities: dict[str, GRANULARITY] = _by_name(GRANULARITY)
buffer_strategies: dict[str, BUFFER_STRATEGY] = _by_name(BUFFER_STRATEGY)
buffer_types: dict[str, BUFFER_TYPE] = _by_name(BUFFER_TYPE)
# How samples of program counters are assigned to call paths; the first is the default.
exact_choices = ("off", "scope", "launch")
_AUTO = "auto"


class Optimize(Enum):
    """Optimizations of records."""

    TIMESHIFT = "time_shift"
    SCHED_STORES = "sched_stores"
    SCHED_BARRIERS = "sched_barriers"
    CLOCK32 = "clock32"

    def __str__(self) -> str:
        return self.value


optimizations = {each.value: each for each in Optimize}
_CHOICES: dict[str, dict[str, Any]] = {
    "metric_type": metric_types,
    "sampling_strategy": sampling_strategies,
    "granularity": granularities,
    "buffer_strategy": buffer_strategies,
    "buffer_type": buffer_types,
}


@dataclass(frozen=True)
class BaseMode:
    """A mode.

    Attributes:
        name: First word of its text.
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PCSampling(BaseMode):
    """Samples of program counters.

    Attributes:
        interval: Cycles between two samples of a multiprocessor, rounded to the nearest power of
            two; with ``"auto"`` (ours) the backend chooses it for the GPU.
        exact: How samples are assigned to call paths; ours. ``"off"`` shares those of a kernel by
            time, ``"scope"`` reads them where an outermost scope ends, ``"launch"`` at every
            launch.
    """

    name: str = field(default="pcsampling", init=False)
    interval: int | str = 1000
    exact: str = "off"

    def __post_init__(self) -> None:
        if self.interval != _AUTO and (not _is_count(self.interval) or self.interval == 0):
            raise UsageError(
                f"Interval must be a positive integer, a number of cycles, or {_AUTO!r}; "
                f"it is {self.interval!r}"
            )
        if self.exact not in exact_choices:
            known = ", ".join(exact_choices)
            raise UsageError(f"Unknown exact: {self.exact}; choose from: {known}")

    def __str__(self) -> str:
        text = f"{self.name}:interval={self.interval}"
        return text if self.exact == exact_choices[0] else f"{text}:exact={self.exact}"


@dataclass(frozen=True)
class InstrumentationMode(BaseMode):
    """Options of kernels that are compiled with instrumentation.

    A value may be given as the name that its table has for it, or as the compiler's own.

    Attributes:
        name: First word of the mode's text.
        metric_type: What a scope in a kernel measures, ``cycle``.
        sampling_strategy: ``none`` records every warp, ``selective`` those of the options.
        sampling_options: Warps to record, as in ``"0,2"``.
        granularity: Who records, ``warp`` by default.
        buffer_strategy: ``circular`` keeps the last records, ``flush`` all.
        buffer_type: Memory the records go to first, ``shared`` or ``global``.
        buffer_size: Bytes per program; 0 chooses.
        optimizations: From ``time_shift``, ``sched_stores``, ``sched_barriers`` and ``clock32``; a
            list of names or of ``Optimize``, or one text with commas.
        passes: Operations to bracket without a change of the source, e.g. ``loops,loads``; ours.
        cta: Programs to keep, e.g. ``0,4-7``; all by default; ours.
        byte_limit: Most bytes of records that one launch may write; 0 chooses; ours.
        compare: Compile each kernel again without records, to compare; ours.
    """

    metric_type: METRIC_TYPE = METRIC_TYPE.CYCLE
    sampling_strategy: SAMPLING_STRATEGY = SAMPLING_STRATEGY.NONE
    sampling_options: str = ""
    granularity: GRANULARITY = GRANULARITY.WARP
    buffer_strategy: BUFFER_STRATEGY = BUFFER_STRATEGY.CIRCULAR
    buffer_type: BUFFER_TYPE = BUFFER_TYPE.SHARED
    buffer_size: int = 0
    optimizations: str | Sequence[str | Optimize] = field(default_factory=list)
    passes: str = ""
    cta: str = ""
    byte_limit: int = 0
    compare: bool = True

    def __post_init__(self) -> None:
        for option, choices in _CHOICES.items():
            value = str(getattr(self, option)).rpartition(".")[2].lower()
            if value not in choices:
                raise UsageError(f"Unknown {option}: {value}; choose from: {', '.join(choices)}")
            object.__setattr__(self, option, choices[value])
        object.__setattr__(self, "optimizations", _optimizations(self.optimizations))
        for option in _SIZES:
            if not _is_count(size := getattr(self, option)):
                raise UsageError(f"{option}={size!r}: give a whole number of bytes, 0 to choose")
        for option, example in _TEXTS.items():
            if not isinstance(text := getattr(self, option), str):
                raise UsageError(f"{option}={text!r}: give a text, as in {option}={example!r}")
        if not _WARPS.fullmatch(self.sampling_options):
            raise UsageError(
                f"sampling_options={self.sampling_options}: give numbers of warps, as in "
                "sampling_options=0,2"
            )
        if not isinstance(self.compare, bool):
            raise UsageError(f"compare={self.compare!r}: give True or False")

    def __str__(self) -> str:
        parts = [self.name, *(f"{option}={getattr(self, option)}" for option in _OPTIONS)]
        parts.append(f"optimizations={','.join(map(str, self.optimizations))}")
        # Upstream lacks these options, so they are in the text only if they are set.
        own = {name: str(getattr(self, name)) for name in _OWN_OPTIONS if getattr(self, name)}
        if not self.compare:
            own["compare"] = "off"
        return ":".join([*parts, *(f"{name}={encode(text)}" for name, text in own.items())])


_OPTIONS = (
    "metric_type",
    "sampling_strategy",
    "sampling_options",
    "granularity",
    "buffer_strategy",
    "buffer_type",
    "buffer_size",
)
_OWN_OPTIONS = ("passes", "cta", "byte_limit")
_SIZES = ("buffer_size", "byte_limit")
_TEXTS = {"sampling_options": "0,2", "passes": "loops,loads", "cta": "0,4-7"}
_WARPS = re.compile(r"(\s*[0-9]+\s*(,\s*[0-9]+\s*)*)?")
_AS_WRITTEN = "*?[]=<>/@!|()"


@dataclass(frozen=True)
class Default(InstrumentationMode):
    """Records the scopes of a kernel's source."""

    name: str = field(default="default", init=False)


@dataclass(frozen=True)
class MMA(InstrumentationMode):
    """The same, under the name that upstream keeps for matrix instructions."""

    name: str = field(default="mma", init=False)


def encode(value: str) -> str:
    """Encode a value for a mode text: without ``:``, ``+`` and ``,``."""
    return quote(value, safe=_AS_WRITTEN)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _optimizations(value: str | Sequence[str | Optimize]) -> list[Optimize]:
    if not isinstance(value, Sequence):
        raise UsageError(f"optimizations={value!r}: give names joined by commas, or a list of them")
    names = value.split(",") if isinstance(value, str) else [str(each) for each in value]
    stripped = [name.strip() for name in names if name.strip()]
    for name in stripped:
        if name not in optimizations:
            known = ", ".join(optimizations)
            raise UsageError(f"Unknown optimization: {name}; choose from: {known}")
    return [optimizations[name] for name in stripped]

"""Modes as objects, under upstream's submodule name; ``str()`` of one is the mode text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar
from urllib.parse import quote

from proton_bench.errors import UsageError

__all__ = [
    "MMA",
    "BaseMode",
    "Default",
    "InstrumentationMode",
    "Optimize",
    "PCSampling",
    "buffer_strategies",
    "buffer_types",
    "encode",
    "granularities",
    "metric_types",
    "optimizations",
    "sampling_strategies",
]

# What upstream's module has under these names; a value is what the modes take.
metric_types = {"cycle": "cycle"}
sampling_strategies = {name: name for name in ("none", "selective")}
granularities = {
    name: name
    for name in (
        *("cta", "warp", "warp_2", "warp_4", "warp_8"),
        *("warp_group", "warp_group_2", "warp_group_4", "warp_group_8"),
    )
}
buffer_strategies = {name: name for name in ("circular", "flush")}
buffer_types = {name: name for name in ("shared", "global")}


class Optimize(Enum):
    """Ways to have records cost or measure less."""

    TIMESHIFT = "time_shift"
    SCHED_STORES = "sched_stores"
    SCHED_BARRIERS = "sched_barriers"
    CLOCK32 = "clock32"

    def __str__(self) -> str:
        return self.value


optimizations = {each.value: each for each in Optimize}
_CHOICES: dict[str, dict[str, str]] = {
    "metric_type": metric_types,
    "sampling_strategy": sampling_strategies,
    "granularity": granularities,
    "buffer_strategy": buffer_strategies,
    "buffer_type": buffer_types,
}


@dataclass(frozen=True)
class BaseMode:
    """A mode without options."""

    name: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PCSampling(BaseMode):
    """Samples of program counters.

    Attributes:
        interval: Cycles between two samples of a multiprocessor.
    """

    name: ClassVar[str] = "pcsampling"
    interval: int = 1000

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise UsageError(f"interval {self.interval} must be a positive number of cycles")

    def __str__(self) -> str:
        return f"{self.name}:interval={self.interval}"


@dataclass(frozen=True)
class InstrumentationMode(BaseMode):
    """Options of kernels that are compiled with instrumentation.

    Attributes:
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
    """

    metric_type: str = "cycle"
    sampling_strategy: str = "none"
    sampling_options: str = ""
    granularity: str = "warp"
    buffer_strategy: str = "circular"
    buffer_type: str = "shared"
    buffer_size: int = 0
    optimizations: str | Sequence[str | Optimize] = ()
    passes: str = ""
    cta: str = ""
    byte_limit: int = 0

    def __post_init__(self) -> None:
        for field, choices in _CHOICES.items():
            value = str(getattr(self, field)).rpartition(".")[2].lower()
            if value not in choices:
                raise UsageError(f"Unknown {field}: {value}; choose from: {', '.join(choices)}")
            object.__setattr__(self, field, value)
        object.__setattr__(self, "optimizations", _optimizations(self.optimizations))

    def __str__(self) -> str:
        parts = [self.name, *(f"{field}={getattr(self, field)}" for field in _FIELDS)]
        parts.append(f"optimizations={','.join(map(str, self.optimizations))}")
        # Upstream has no such options, so they stand in the text only where they say something.
        own = {field: str(getattr(self, field)) for field in _OWN_FIELDS if getattr(self, field)}
        return ":".join([*parts, *(f"{field}={encode(text)}" for field, text in own.items())])


_FIELDS = (
    "metric_type",
    "sampling_strategy",
    "sampling_options",
    "granularity",
    "buffer_strategy",
    "buffer_type",
    "buffer_size",
)
_OWN_FIELDS = ("passes", "cta", "byte_limit")
_AS_WRITTEN = "*?[]=<>/@!|()"


@dataclass(frozen=True)
class Default(InstrumentationMode):
    """Records the scopes of a kernel as they stand in its source."""

    name: ClassVar[str] = "default"


@dataclass(frozen=True)
class MMA(InstrumentationMode):
    """The same, under the name that upstream keeps for matrix instructions."""

    name: ClassVar[str] = "mma"


def encode(value: str) -> str:
    """Write a value so that it can stand in a mode text: without ``:``, ``+`` and ``,``."""
    return quote(value, safe=_AS_WRITTEN)


def _optimizations(value: str | Sequence[str | Optimize]) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else [str(each) for each in value]
    stripped = tuple(name.strip() for name in names if name.strip())
    for name in stripped:
        if name not in optimizations:
            known = ", ".join(optimizations)
            raise UsageError(f"Unknown optimization: {name}; choose from: {known}")
    return stripped

"""Modes as objects, under upstream's submodule name; ``str()`` of one is the mode text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import ClassVar, Self
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
    "exact_choices",
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
# How samples of program counters find their call path; the first is the default.
exact_choices = ("off", "scope", "launch")
_AUTO = "auto"


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
    """A mode without options.

    Raises:
        UsageError: There is no such option, or its value is wrong.
    """

    name: ClassVar[str] = ""

    def __new__(cls, *values: object, **options: object) -> Self:
        """Refuse options that the mode lacks before Python does, with the choices."""
        del values
        known = [field.name for field in fields(cls)]
        for option in options:
            if option not in known:
                raise UsageError(
                    f"mode {cls.__name__} has no option {option!r}; "
                    f"choose from: {', '.join(known) or 'none'}"
                )
        return super().__new__(cls)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PCSampling(BaseMode):
    """Samples of program counters.

    Attributes:
        interval: Cycles between two samples of a multiprocessor, of which the nearest power of two
            is taken; ``"auto"`` (ours) has the backend choose it from the GPU.
        exact: How samples find their call path; ours. ``"off"`` shares those of a kernel by time,
            ``"scope"`` reads them where an outermost scope ends, ``"launch"`` at every launch.
    """

    name: ClassVar[str] = "pcsampling"
    interval: int | str = 1000
    exact: str = "off"

    def __post_init__(self) -> None:
        if self.interval != _AUTO and (not _is_count(self.interval) or self.interval == 0):
            raise UsageError(
                f"interval {self.interval!r} must be a positive number of cycles, or {_AUTO!r}"
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
        compare: Compile each kernel once more without records, to tell what they cost it; ours.
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
    compare: bool = True

    def __post_init__(self) -> None:
        for field, choices in _CHOICES.items():
            value = str(getattr(self, field)).rpartition(".")[2].lower()
            if value not in choices:
                raise UsageError(f"Unknown {field}: {value}; choose from: {', '.join(choices)}")
            object.__setattr__(self, field, value)
        object.__setattr__(self, "optimizations", _optimizations(self.optimizations))
        for field in _SIZES:
            if not _is_count(size := getattr(self, field)):
                raise UsageError(f"{field}={size!r}: give a whole number of bytes, 0 to choose")
        for field in _TEXTS:
            if not isinstance(text := getattr(self, field), str):
                raise UsageError(f"{field}={text!r}: give a text, as in {field}={_TEXTS[field]!r}")
        if not _WARPS.fullmatch(self.sampling_options):
            raise UsageError(
                f"sampling_options={self.sampling_options}: name warps by their numbers, as in "
                "sampling_options=0,2"
            )
        if not isinstance(self.compare, bool):
            raise UsageError(f"compare={self.compare!r}: give True or False")

    def __str__(self) -> str:
        parts = [self.name, *(f"{field}={getattr(self, field)}" for field in _FIELDS)]
        parts.append(f"optimizations={','.join(map(str, self.optimizations))}")
        # Upstream has no such options, so they stand in the text only where they say something.
        own = {field: str(getattr(self, field)) for field in _OWN_FIELDS if getattr(self, field)}
        if not self.compare:
            own["compare"] = "off"
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
_SIZES = ("buffer_size", "byte_limit")
_TEXTS = {"sampling_options": "0,2", "passes": "loops,loads", "cta": "0,4-7"}
_WARPS = re.compile(r"(\s*[0-9]+\s*(,\s*[0-9]+\s*)*)?")
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


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _optimizations(value: str | Sequence[str | Optimize]) -> tuple[str, ...]:
    if not isinstance(value, Sequence):
        raise UsageError(f"optimizations={value!r}: give names joined by commas, or a list of them")
    names = value.split(",") if isinstance(value, str) else [str(each) for each in value]
    stripped = tuple(name.strip() for name in names if name.strip())
    for name in stripped:
        if name not in optimizations:
            known = ", ".join(optimizations)
            raise UsageError(f"Unknown optimization: {name}; choose from: {known}")
    return stripped

"""Settings of a session of the backend, from its mode text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from proton_bench.errors import UsageError
from proton_bench.mode import MMA, SAMPLING_STRATEGY, Default, InstrumentationMode
from proton_bench.plugin import Mode
from proton_bench.plugin.kernel_mode import KernelMode

OPTIONS = {
    "metric_type": "what a scope measures: cycle",
    "sampling_strategy": "none (default): every warp records; selective: those of sampling_options",
    "sampling_options": "warps to record, as in 0,2",
    "granularity": "unit that records: warp",
    "buffer_strategy": "circular (default): the last records of a warp are kept",
    "buffer_type": "where records are written first: shared (default) or global memory",
    "buffer_size": "bytes per program, a power of two per recorded warp; 0 (default) chooses",
    "optimizations": "of time_shift, sched_stores, sched_barriers, clock32, joined by commas",
    "passes": "operations to bracket without changing the source, e.g. loops,loads",
    "cta": "programs to keep, e.g. 0,4-7; default all",
    "byte_limit": "most bytes of records that one launch may write; default 1073741824",
    "trace": "on: each instance of a scope is kept for a timeline; off (default)",
    "compare": "off: kernels are not also compiled without records to compare",
}
DEFAULT_BYTE_LIMIT = 1 << 30
_MODES: dict[str, type[InstrumentationMode]] = {"": Default, "default": Default, "mma": MMA}
_INSTRUMENTATION = (
    "metric_type",
    "sampling_strategy",
    "sampling_options",
    "granularity",
    "buffer_strategy",
    "buffer_type",
    "optimizations",
)
_MOST_DIGITS = 19  # of a number of bytes
_MOST_ID = 2**32 - 1  # of a program or warp


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How kernels are compiled, and which records are kept.

    Attributes:
        mode: Name of the mode.
        metric_type: What a scope measures, ``cycle``.
        warp_ids: Warps that record, ascending; none means all.
        granularity: Who records, ``warp``.
        buffer_strategy: ``circular``.
        buffer_type: Memory that records go to first, ``shared`` or ``global``.
        buffer_size: Bytes per program; 0 leaves it to the compiler.
        optimizations: Names, sorted.
        passes: Text of ``--instrument``.
        cta: Ranges (first, last) of programs to keep; none means all.
        byte_limit: Most bytes of records that one launch may write.
        trace: Keep each instance of a scope.
        compare: Compile each kernel without records too, to compare.
        custom: Mode of a plugin, with the values of its options.
    """

    mode: str = "default"
    metric_type: str = "cycle"
    warp_ids: tuple[int, ...] = ()
    granularity: str = "warp"
    buffer_strategy: str = "circular"
    buffer_type: str = "shared"
    buffer_size: int = 0
    optimizations: tuple[str, ...] = ()
    passes: str = ""
    cta: tuple[tuple[int, int], ...] = ()
    byte_limit: int = DEFAULT_BYTE_LIMIT
    trace: bool = False
    compare: bool = True
    custom: KernelMode | None = None
    custom_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def wide_clock(self) -> bool:
        """Whether records hold 43 bits of the clock, not 32."""
        return "clock32" not in self.optimizations

    @property
    def deducts_cost(self) -> bool:
        """Whether the cost of records is subtracted from scopes."""
        return "time_shift" in self.optimizations

    def digest(self, *parts: str) -> str:
        """Return a text that identifies the code of compiled kernels.

        Args:
            *parts: Further facts that affect the code.
        """
        custom = (self.custom.name, self.custom.version) if self.custom else ()
        code = (
            *(self.mode if self.custom else "", self.metric_type, self.warp_ids, self.granularity),
            *(self.buffer_strategy, self.buffer_type, self.buffer_size),
            *(name for name in self.optimizations if name != "time_shift"),
            *(custom, sorted(self.custom_options.items()), parts),
        )
        return hashlib.sha256(repr(code).encode()).hexdigest()[:16]


def read_settings(mode: Mode, customs: Mapping[str, KernelMode] | None = None) -> Settings:
    """Return the settings of a session.

    Args:
        mode: Mode with its options.
        customs: Modes of plugins by name.

    Raises:
        UsageError: A value is unknown, malformed, or one that no compiler supports yet.
    """
    values = {key: unquote(text) for key, text in mode.options.items()}
    custom = (customs or {}).get(mode.name)
    if custom is None and mode.name not in _MODES:
        raise UsageError(f"Unknown mode: {mode.name}; choose from: default, mma")
    own = dict(values) if custom is None else {key: values[key] for key in OPTIONS if key in values}
    spelled = {key: own[key] for key in _INSTRUMENTATION if own.get(key)}
    checked = _MODES.get(mode.name, Default)(**spelled)  # type: ignore[arg-type]
    _require_supported(checked)
    return Settings(
        mode=mode.name or "default",
        metric_type=checked.metric_type.name.lower(),
        warp_ids=_warp_ids(checked),
        buffer_type=checked.buffer_type.name.lower(),
        buffer_size=_number("buffer_size", own.get("buffer_size", ""), 0),
        optimizations=tuple(sorted(map(str, checked.optimizations))),
        passes=own.get("passes", ""),
        cta=_ranges(own.get("cta", "")),
        byte_limit=_number("byte_limit", own.get("byte_limit", ""), 0) or DEFAULT_BYTE_LIMIT,
        trace=_switch("trace", own.get("trace", "off")),
        compare=_switch("compare", own.get("compare", "on")),
        custom=custom,
        custom_options={} if custom is None else {k: v for k, v in values.items() if k not in own},
    )


def _require_supported(mode: InstrumentationMode) -> None:
    only = {"granularity": "warp", "buffer_strategy": "circular"}
    for option, supported in only.items():
        value = getattr(mode, option).name.lower()
        if value != supported:
            raise UsageError(
                f"{option}={value}: no version of Triton supports this; leave the option out or "
                f"write {option}={supported}"
            )


def _warp_ids(mode: InstrumentationMode) -> tuple[int, ...]:
    if mode.sampling_strategy is SAMPLING_STRATEGY.NONE:
        if mode.sampling_options:
            raise UsageError(
                f"sampling_options={mode.sampling_options} needs sampling_strategy=selective"
            )
        return ()
    if not mode.sampling_options:
        return ()  # as upstream: none means all
    numbers = [part.strip() for part in mode.sampling_options.split(",")]
    if not all(_is_number(part) and int(part) <= _MOST_ID for part in numbers):
        raise UsageError(
            f"sampling_options={mode.sampling_options}: no kernel has that many warps; count them "
            "from 0"
        )
    ids = [int(part) for part in numbers]
    if ids != sorted(set(ids)):
        ordered = ",".join(str(each) for each in sorted(set(ids)))
        raise UsageError(
            f"sampling_options={mode.sampling_options}: name each warp once and in ascending "
            f"order, as in sampling_options={ordered}"
        )
    return tuple(ids)


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    ranges = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        first, dash, last = part.partition("-")
        last = last if dash else first
        is_range = _is_number(first) and _is_number(last)
        if not (is_range and int(first) <= int(last) <= _MOST_ID):
            raise UsageError(f"cta={text}: write numbers and ranges of programs, e.g. cta=0,4-7")
        ranges.append((int(first), int(last)))
    return tuple(sorted(ranges))


def _number(option: str, text: str, default: int) -> int:
    if not text:
        return default
    if not _is_number(text.strip()):
        raise UsageError(f"{option}={text}: give a whole number of bytes, 0 to choose")
    return int(text)


def _switch(option: str, text: str) -> bool:
    if text not in {"on", "off"}:
        raise UsageError(f"{option}={text}; choose from: on, off")
    return text == "on"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS

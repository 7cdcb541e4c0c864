"""Backends: named sources of records, with the modes and data they support.

Nothing here touches a device: a ``Backend`` is a description, ``Backend.open`` makes the collector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from proton_bench.errors import UsageError
from proton_bench.plugin.canary import Canary
from proton_bench.support.text import did_you_mean


@runtime_checkable
class Collector(Protocol):
    """A process-wide source of records; there is one per backend for all sessions.

    The core counts users: ``start`` is called for the first session that wants the collector and
    ``stop`` after the last one left. Both may be called again afterwards.
    """

    def start(self) -> None:
        """Begin to collect; on an exception nothing is left switched on."""

    def flush(self) -> None:
        """Deliver every record of work that was submitted before this call."""

    def stop(self) -> None:
        """Stop collecting and restore everything that ``start`` changed."""


@runtime_checkable
class Detachable(Protocol):
    """A collector that costs the program something even when it is stopped."""

    def detach(self) -> None:
        """Leave the process until the next ``start``; called between recording windows."""


@runtime_checkable
class SelfDescribing(Protocol):
    """A collector that adds facts to the provenance of its profiles."""

    def facts(self) -> Mapping[str, Any]:
        """Return texts, numbers and lists of them, e.g. the vendor library's path and version."""


@runtime_checkable
class Remarking(Protocol):
    """A collector that may print a remark at the end of a session."""

    def remark(self, counts: Mapping[str, int]) -> str | None:
        """Return one line for the user, or None.

        Args:
            counts: The session's counts, such as ``launches``, ``records`` and ``dropped``.
        """


class SessionFacts(Protocol):
    """The facts of a session for session hooks."""

    @property
    def id(self) -> int:
        """Number of the session in this process."""

    @property
    def name(self) -> str:
        """Output name without a suffix."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a backend can run here, and why or why not in one line.

    Attributes:
        available: True if ``Backend.open`` is expected to work.
        reason: What was found, or what is missing and what to do.
    """

    available: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ModeSpec:
    """A mode that a backend declares.

    Attributes:
        name: First word of the mode text; "" gives options to the default mode.
        options: Documentation of each option by its name.
        summary: One line on what the mode does.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Mode:
    """A parsed mode text, ``name[:key=value]...``; the empty text is every backend's default.

    Attributes:
        name: First word; "" is the default mode.
        options: Values as written, by option name.
        text: The mode as the user gave it.
    """

    name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A source of records that the user selects by name.

    Attributes:
        name: Name for ``-b``; lower case, without ``+`` and ``:``.
        summary: One line for ``proton doctor``.
        availability: Cheap check that neither raises nor starts a driver.
        open: Returns the collector for a mode that this backend declared.
        modes: Modes other than the default one.
        data: Kinds of data that sessions may ask for.
        records_wall: Scopes of a session with this backend carry ``wall (ns)``.
        device_kinds: Kinds of devices that its records may name, e.g. ``("CUDA",)``.
        trace_option: Option that is "on" in the mode of sessions with ``data="trace"``; "" if the
            collector does not need it.
        passes_mode: Mode whose option ``passes`` brackets operations of kernels, for
            ``--instrument``; None if there is none.
        prepare: Runs before the target is loaded (command line and pytest plugin only), where
            settings still take effect; returns a one-line notice for stderr, or None.
        canary: Makes the canary kernels of runs for a gate.
        refused_modes: Modes of other backends that this one lacks, by name, with the reason.
        default_because: Why it is the default, e.g. "no GPU was found", for errors about missing
            features.
    """

    name: str
    summary: str
    availability: Callable[[], Availability]
    open: Callable[[Mode], Collector]
    modes: tuple[ModeSpec, ...] = ()
    data: tuple[str, ...] = ("tree",)
    records_wall: bool = False
    device_kinds: tuple[str, ...] = ()
    trace_option: str = ""
    passes_mode: str | None = None
    prepare: Callable[[], str | None] | None = None
    canary: Callable[[], Canary] | None = None
    refused_modes: Mapping[str, str] = field(default_factory=dict)
    default_because: str = ""


def parse_mode(text: str | None) -> Mode:
    """Split a mode text into its name and options, without checking that it exists.

    Args:
        text: ``name[:key=value]...``, or ``key=value[:key=value]...`` for options of the default
            mode; None and "" mean the default mode.

    Raises:
        UsageError: An option is not of the form ``key=value`` or is given twice.
    """
    if not text:
        return Mode()
    name, *parts = text.split(":")
    if "=" in name:
        name, parts = "", [name, *parts]
    options: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise UsageError(
                f"malformed option {part!r} in mode {text!r}: write the mode as name:key=value"
            )
        if key in options:
            raise UsageError(f"option {key!r} is given twice in mode {text!r}: give it once")
        options[key] = value
    return Mode(name, options, text)


def assign_modes(backends: Sequence[Backend], text: str | None) -> tuple[Mode, ...]:
    """Give the mode to the backends that declare it and the default mode to the others.

    Args:
        backends: The backends of one session.
        text: The mode as the user gave it; None and "" are the default mode. Modes of several
            backends are joined by ``+``.

    Returns:
        One mode per backend, in order.

    Raises:
        UsageError: No backend declares the mode, or all that do lack an option (the message names
            the choices), or a backend is given two modes.
    """
    assigned = [Mode()] * len(backends)
    for part in split_modes(backends, text or ""):
        for place, mode in enumerate(_assign(backends, part)):
            if mode.text and assigned[place].text:
                raise UsageError(
                    f"backend {backends[place].name!r} is given two modes, "
                    f"{assigned[place].text!r} and {mode.text!r}; give it one"
                )
            assigned[place] = mode if mode.text else assigned[place]
    return tuple(assigned)


def with_data(backend: Backend, mode: Mode, data: str) -> Mode:
    """Add the session's kind of data to a backend's mode, if the backend needs it.

    Args:
        backend: The backend.
        mode: Its mode.
        data: ``tree`` or ``trace``.
    """
    option = backend.trace_option
    if data != "trace" or not option or option in mode.options:
        return mode
    text = f"{mode.text}:{option}=on" if mode.text else f"{option}=on"
    return Mode(mode.name, {**mode.options, option: "on"}, text)


def split_modes(backends: Sequence[Backend], text: str) -> list[str]:
    """Split at each ``+`` before a declared mode, because values may contain ``+`` too.

    Args:
        backends: The backends of one session.
        text: Modes joined by ``+``.
    """
    specs = [spec for backend in backends for spec in backend.modes]
    starts = {spec.name for spec in specs if spec.name}
    starts |= {f"{key}=" for spec in specs if not spec.name for key in spec.options}
    parts: list[str] = []
    for piece in text.split("+"):
        key, equals, _ = piece.partition(":")[0].partition("=")
        if parts and key + equals not in starts:
            parts[-1] += f"+{piece}"
        else:
            parts.append(piece)
    return parts


def _assign(backends: Sequence[Backend], text: str) -> tuple[Mode, ...]:
    mode = parse_mode(text)
    if not mode.name and not mode.options:
        return tuple(Mode() for _ in backends)
    declared = [_declared_mode(backend, mode.name) for backend in backends]
    if not any(declared):
        raise UsageError(_unknown_mode_message(backends, mode))
    takers = [
        spec if spec is not None and {*mode.options} <= {*spec.options} else None
        for spec in declared
    ]
    for backend, spec in zip(backends, declared, strict=True):
        if spec is not None and not any(takers):
            _check_options(backend, spec, mode)
    return tuple(mode if spec is not None else Mode() for spec in takers)


def _declared_mode(backend: Backend, name: str) -> ModeSpec | None:
    return next((spec for spec in backend.modes if spec.name == name), None)


def _check_options(backend: Backend, spec: ModeSpec, mode: Mode) -> None:
    for key in mode.options:
        if key not in spec.options:
            known = ", ".join(spec.options) or "none"
            raise UsageError(
                f"mode {mode.name!r} of backend {backend.name!r} has no option {key!r}; "
                f"its options: {known}"
            )


def _unknown_mode_message(backends: Sequence[Backend], mode: Mode) -> str:
    specs = [spec for backend in backends for spec in backend.modes]
    known = [
        spec.name or f"options {', '.join(spec.options)}"
        for spec in specs
        if spec.name or spec.options
    ]
    choices = (
        f"choose one of {', '.join(known)}" if known else "it has no modes, leave the mode out"
    )
    takers = [spec.name for spec in specs if mode.options and {*mode.options} <= {*spec.options}]
    if takers and not mode.name:
        choices += f"; these are options of {takers[0]!r}: write {takers[0]}:{mode.text}"
    refused = [
        each.refused_modes[mode.name] for each in backends if mode.name in each.refused_modes
    ]
    choices += "".join(f"; {why}" for why in refused)
    profiler = f"{backends[0].name.capitalize()}Profiler"  # upstream's word
    meant = did_you_mean(mode.name, [spec.name for spec in specs])
    return f"{profiler}: unsupported mode: {mode.text}{meant or f'; {choices}'}"

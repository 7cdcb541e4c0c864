"""What a session is asked to do, checked before anything is switched on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from proton_bench.errors import UsageError
from proton_bench.plugin.backend import Backend, Mode, assign_modes, with_data
from proton_bench.plugin.flushing import PeriodicFlushing, take_flushing, with_flushing
from proton_bench.recording.context.sources import parse_context
from proton_bench.recording.gpu.counters import COUNTER_RATE_HZ
from proton_bench.recording.kernels.hooks import Hook
from proton_bench.recording.session.host_samples import host_rate_hz
from proton_bench.recording.session.output_format import (
    TRACE_FORMATS,
    check_formats,
    default_formats,
    trace_formats_of,
)
from proton_bench.support.text import did_you_mean

_DATA = ("tree", "trace")
STDOUT = "-"
_TRUE = ("1", "on", "true")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """Arguments of ``start`` as the user gave them.

    Attributes:
        name: Output path without a suffix; "" and "-" mean stdout.
        context: Where call paths come from, as ``parse_context`` reads it.
        data: Kind of data, ``tree``, or ``trace`` where the backends record timelines.
        backend: Names joined by ``+``; None asks the plugins for their default.
        mode: Mode text, or an object of ``proton_bench.mode``, for the backend that declares it.
        hook: Name of a launch hook, a ``Hook``, or None, which is ``triton`` for ``shapes``.
        command: Command line for the provenance; None takes this process's own.
        revision: Commit of the program for the provenance; "" asks git about the current folder.
        trace_formats: For ``trace``: formats that the timeline is written in while the program
            runs, ``chrome_trace`` and ``perfetto``; the end can choose among these.
        program: Name of the program for its timeline; "" takes that of the script.
        upstream_shape: Upstream's formats show the tree and the timeline as upstream would, unless
            ``PROTON_BENCH_UPSTREAM_TREE`` says otherwise.
        samples_host: The threads of the program are sampled, unless ``PROTON_BENCH_HOST_SAMPLES``
            says otherwise.
    """

    name: str | os.PathLike[str]
    context: str = "shadow"
    data: str = "tree"
    backend: str | None = None
    mode: object = None
    hook: Hook | str | None = None
    command: tuple[str, ...] | None = None
    revision: str = ""
    trace_formats: tuple[str, ...] = ("chrome_trace",)
    program: str = ""
    upstream_shape: bool = False
    samples_host: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePlan:
    """The same, resolved: everything exists and fits together.

    Attributes:
        path: Absolute output path without a suffix, or "-" for stdout.
        context: Context sources, joined by ``+``.
        data: Kind of data.
        backends: Backends, at least one.
        modes: One mode per backend.
        hook: Launch hook, not switched on yet.
        command: Command line for the provenance.
        revision: Commit of the program; "" where git is asked at the end.
        trace_formats: Formats that the timeline is written in while the program runs.
        flushing: How phases are written while the program runs; None where they are not.
        program: Name of the program for its timeline.
        counter_rate_hz: How often counters of a timeline are sampled; 0 is never.
        upstream_shape: Upstream's formats show the tree and the timeline as upstream would.
        host_rate_hz: How often the threads of the program are sampled; 0 is never.
        asked: The options as they were given, for another process that is to record the same way.
    """

    path: str
    context: str
    data: str
    backends: tuple[Backend, ...]
    modes: tuple[Mode, ...]
    hook: Hook | None
    command: tuple[str, ...]
    revision: str
    trace_formats: tuple[str, ...]
    flushing: PeriodicFlushing | None
    program: str
    counter_rate_hz: float
    upstream_shape: bool
    host_rate_hz: float
    asked: SessionOptions

    @property
    def backend_names(self) -> str:
        """Names of the backends as ``-b`` takes them."""
        return "+".join(backend.name for backend in self.backends)

    @property
    def end_formats(self) -> tuple[str, ...]:
        """Formats that the end writes where none is named."""
        if self.flushing is not None:
            return (self.flushing.format,)
        return default_formats(self.data, self.asked.trace_formats)

    @property
    def has_own_timeline(self) -> bool:
        """Whether ``chrome_trace`` is that of scopes inside kernels alone, written at the end."""
        return self.data == "trace" and _has_own_timeline(self.backends)

    @property
    def writable_timelines(self) -> tuple[str, ...]:
        """Formats of timelines that the end can write."""
        own = ("chrome_trace",) if self.has_own_timeline else ()
        return tuple(dict.fromkeys((*own, *self.trace_formats)))

    @property
    def is_written_meanwhile(self) -> bool:
        """Whether files are written while the program runs."""
        return bool(self.trace_formats) or self.flushing is not None

    @property
    def follows_steps(self) -> bool:
        """Whether the steady steps are told apart: in one tree of ours, which has room for it."""
        return self.data == "tree" and self.flushing is None and self.asked.samples_host

    @property
    def records_memory(self) -> bool:
        """Whether rows have the memory of GPUs that they allocated."""
        is_of_gpu = any({"CUDA", "HIP"} & set(each.device_kinds) for each in self.backends)
        return is_of_gpu and not self.upstream_shape  # which has no rows that only allocate

    @property
    def records_wall(self) -> bool:
        """Whether scopes carry ``wall (ns)``."""
        return any(backend.records_wall for backend in self.backends)


def session_path(name: object) -> str:
    """Return the absolute output path of a name, or "-" for stdout.

    Raises:
        UsageError: The name is not a path.
    """
    path = os.fspath(name) if isinstance(name, (str, os.PathLike)) else None
    if not isinstance(path, str) or "\0" in path:
        raise UsageError(f"session name {name!r} is not a path: give a text without NUL characters")
    if path and os.path.basename(path) in ("", ".", ".."):
        raise UsageError(f"session name {name!r} is a folder: add a file name")
    return STDOUT if path in ("", STDOUT) else os.path.abspath(path)


def plan_capture(options: SessionOptions) -> CapturePlan:
    """Resolve and check all options of a session; nothing is switched on.

    Raises:
        UsageError: Something is unknown or does not fit; the message names the choices.
        BackendUnavailableError: A backend cannot run here.
    """
    path = session_path(options.name)
    context = parse_context(options.context)
    data = _choice("data", options.data, _DATA)
    # Which sees the arguments of Triton's kernels.
    usual = "triton" if "shapes" in context and "triton" in launch_hooks() else None
    hook = _resolve_hook(usual if options.hook is None else options.hook)
    from proton_bench.plugin.manager import explaining_default, resolve_backend

    backend = _backend_text(options.backend)
    backends = resolve_backend(backend)
    text = None if options.mode is None else str(options.mode)
    with explaining_default(backend, backends):
        _check_data(data, backends)
        flushing, rest = take_flushing(backends, text)
        flushing = _checked_flushing(flushing, data, path)
        modes = [
            with_flushing(each, with_data(each, mode, data), flushing)
            for each, mode in zip(backends, assign_modes(backends, rest), strict=True)
        ]
    streamed = _streamed(options, backends, flushing)
    return CapturePlan(
        path=path,
        context=context,
        data=data,
        backends=backends,
        modes=tuple(modes),
        hook=hook,
        command=tuple(sys.orig_argv) if options.command is None else options.command,
        revision=options.revision,
        trace_formats=streamed,
        flushing=flushing,
        program=options.program or os.path.basename(sys.argv[0]) or "python",
        counter_rate_hz=COUNTER_RATE_HZ if streamed else 0.0,
        upstream_shape=_has_upstream_shape(options),
        host_rate_hz=host_rate_hz(is_default=options.samples_host),
        asked=options,
    )


def launch_hooks() -> dict[str, Callable[[], Any]]:
    """Return the launch hooks that plugins offer: factories by the name that ``hook=`` takes."""
    from proton_bench.plugin.manager import get_plugin_manager

    return get_plugin_manager().merged("proton_launch_hooks")


def _checked_flushing(
    flushing: PeriodicFlushing | None, data: str, path: str
) -> PeriodicFlushing | None:
    if flushing is None:
        return None
    if path == STDOUT:
        raise UsageError(
            "periodic_flushing writes a file for each phase: name them with name=, -n or -o"
        )
    chosen = flushing.format or default_formats(data)[0]
    check_formats([chosen], data)
    return replace(flushing, format=chosen)


def _has_own_timeline(backends: Sequence[Backend]) -> bool:
    """Whether the timeline is that of scopes inside kernels alone, which keeps upstream's form."""
    return len(backends) == 1 and bool(backends[0].trace_option)


def _streamed(
    options: SessionOptions, backends: Sequence[Backend], flushing: PeriodicFlushing | None
) -> tuple[str, ...]:
    for name in options.trace_formats:
        if name not in TRACE_FORMATS:
            raise UsageError(
                f"{name} is not a format of timelines; choose from: {', '.join(TRACE_FORMATS)}"
            )
    wanted = options.trace_formats if flushing is None else (flushing.format,)
    own = ("chrome_trace",) if _has_own_timeline(backends) else ()
    data = str(options.data).lower()
    return tuple(name for name in dict.fromkeys(trace_formats_of(wanted, data)) if name not in own)


def _has_upstream_shape(options: SessionOptions) -> bool:
    asked = os.environ.get("PROTON_BENCH_UPSTREAM_TREE", "").lower()
    return asked in _TRUE if asked else options.upstream_shape


def _choice(what: str, value: object, choices: Sequence[str]) -> str:
    text = value.lower() if isinstance(value, str) else value
    if text not in choices:
        meant = did_you_mean(str(value), choices) or f"; choose from: {', '.join(choices)}"
        raise UsageError(f"Unknown {what}: {value}{meant}")
    return str(text)


def _backend_text(backend: object) -> str | None:
    if backend is not None and not isinstance(backend, str):
        raise UsageError(f"backend {backend!r} is not a text: write names joined by '+'")
    return backend.lower() if backend else None


def _check_data(data: str, backends: Sequence[Backend]) -> None:
    for backend in backends:
        if data not in backend.data:
            raise UsageError(
                f"backend {backend.name!r} does not record data={data!r}; "
                f"choose from: {', '.join(backend.data)}"
            )


def _resolve_hook(hook: object) -> Hook | None:
    if hook is None or isinstance(hook, Hook):
        return hook
    offered = launch_hooks()
    factory = offered.get(hook) if isinstance(hook, str) else None
    if factory is None:
        known = ", ".join(sorted(offered)) or "none"
        choices = f"; choose from: {known}, or pass a proton_bench.hooks.Hook"
        raise UsageError(f"Unsupported hook: {hook!r}{did_you_mean(str(hook), offered) or choices}")
    made = factory()
    if not isinstance(made, Hook):
        raise UsageError(
            f"Unsupported hook: {hook!r} made a {type(made).__name__}, which is not a "
            "proton_bench.hooks.Hook; see `proton doctor` for its plugin"
        )
    return made

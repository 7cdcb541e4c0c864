"""Loads plugins, isolates broken ones, and resolves backend names."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pluggy

from proton_bench.errors import BackendUnavailableError, UsageError
from proton_bench.plugin import hookspecs
from proton_bench.plugin.backend import Availability, Backend
from proton_bench.plugin.installed import may_have_plugins
from proton_bench.support.text import did_you_mean, visible

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


BUILTIN = (
    "proton_bench_plugins.cpu",
    "proton_bench_plugins.roctracer",
    "proton_bench_plugins.rocprofiler",
    "proton_bench_plugins.cupti",
    "proton_bench_plugins.instrumentation",
    "proton_bench_plugins.nvtx",
    "proton_bench_plugins.replay",
    "proton_bench_plugins.triton",
)
_FALLBACK_BACKEND = "cpu"


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """A plugin that is left out, or whose hook failed, and why."""

    name: str
    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class OfferedBackend:
    """A backend and the name of the plugin that offers it."""

    backend: Backend
    plugin: str


class PluginManager:
    """The registered plugins; every failure of one of them is recorded and contained.

    Args:
        builtin: Modules to import, in order; the hooks of later ones are called first.
        entry_points: Also load third-party plugins from the entry-point group.
    """

    def __init__(self, builtin: Sequence[str] = BUILTIN, *, entry_points: bool = True) -> None:
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT_NAME)
        self._pluggy.add_hookspecs(hookspecs)
        self._origins: dict[str, str] = {}
        self._broken: dict[str, BrokenPlugin] = {}
        for module in builtin:
            self._add(module.rpartition(".")[2], "built-in", _module_loader(module))
        if entry_points:
            for point in _entry_points():
                self._add(point.name, _origin(point), point.load)

    @property
    def broken(self) -> tuple[BrokenPlugin, ...]:
        """The plugins that failed so far, in the order of failing."""
        return tuple(self._broken.values())

    @property
    def origins(self) -> Mapping[str, str]:
        """Origin ("built-in" or the distribution) of every plugin, broken or not, by its name."""
        return dict(self._origins)

    def register(self, plugin: object, name: str, *, origin: str = "in-process") -> None:
        """Add a plugin object; an invalid one is recorded as broken, without raising."""
        self._add(name, origin, lambda: plugin)

    def call(self, hook: str, **arguments: object) -> list[tuple[str, Any]]:
        """Call a hook of every plugin, those that were added last first.

        Returns:
            (plugin name, result) of each result except None.
        """
        return getattr(self._pluggy.hook, hook)(**arguments)  # type: ignore[no-any-return]

    def merged(self, hook: str) -> dict[Any, Any]:
        """Return the offers of plugins by name; if two have one name, the later plugin wins."""
        merged: dict[Any, Any] = {}
        for plugin, offered in reversed(self.call(hook)):
            with self._contained(plugin, f"{hook}: "):
                merged |= offered
        return merged

    def default_backend(self) -> str:
        """Return the default backend: the first answer of a plugin."""
        answer = self._pluggy.hook.proton_default_backend()
        return str(answer[1]) if answer is not None and answer[1] else _FALLBACK_BACKEND

    def backends(self) -> dict[str, OfferedBackend]:
        """All offered backends by name; if two have one name, the built-in or earlier one wins."""
        offered: dict[str, OfferedBackend] = {}
        for plugin, backends in reversed(self.call("proton_backends")):
            with self._contained(plugin, "proton_backends: "):
                _add_backends(offered, plugin, backends)
        return offered

    def register_formats(self) -> None:
        """Make the file formats of plugins known to ``formats.registry``."""
        from proton_bench.formats.registry import register_format

        for plugin, formats in reversed(self.call("proton_formats")):
            with self._contained(plugin, "proton_formats: "):
                for each in formats:
                    register_format(each)

    def _add(self, name: str, origin: str, load: Callable[[], object]) -> None:
        self._origins[name] = origin
        plugin: object = None
        with self._contained(name, "cannot be imported: "):
            plugin = load()
        if plugin is None:
            return
        with self._contained(name, "does not fit the hooks: "):
            self._pluggy.register(self._guarded(plugin, name), name=name)
            self._pluggy.check_pending()
        if name in self._broken and self._pluggy.has_plugin(name):
            self._pluggy.unregister(name=name)

    def _guarded(self, plugin: object, name: str) -> types.ModuleType:
        """Return the hooks of a plugin, wrapped: they do not raise, and results name the plugin."""
        guarded = types.ModuleType(name)
        for hook in dir(plugin):
            if options := self._pluggy.parse_hookimpl_opts(plugin, hook):
                if options["wrapper"] or options["hookwrapper"]:
                    raise UsageError(f"{hook} is a wrapper; write a plain hook function")
                setattr(guarded, hook, self._guard(getattr(plugin, hook), name, hook))
        return guarded

    def _guard(self, function: Callable[..., Any], plugin: str, hook: str) -> Callable[..., Any]:
        @functools.wraps(function)  # pluggy reads marker and arguments of the wrapped function
        def call(*arguments: object) -> tuple[str, Any] | None:
            answer = None
            with self._contained(plugin, f"{hook} raised "):
                answer = function(*arguments)
            return None if answer is None else (plugin, answer)

        return call

    @contextlib.contextmanager
    def _contained(self, plugin: str, doing: str) -> Iterator[None]:
        try:
            yield
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            self._fail(plugin, doing + _reason(error))

    def _fail(self, name: str, reason: str) -> None:
        if name in self._broken:
            return
        self._broken[name] = BrokenPlugin(name, self._origins.get(name, "in-process"), reason)
        sys.stderr.write(
            f"proton: warning: plugin {visible(name)!r} is broken: {visible(reason)}; "
            "see `proton doctor`\n"
        )


@functools.cache
def get_plugin_manager() -> PluginManager:
    """Return the manager of this process, loading all plugins on the first call."""
    return PluginManager()


def backend_availability(backend: Backend) -> Availability:
    """Check whether a backend can run here; a check that raises counts as "no"."""
    try:
        return backend.availability()
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return Availability(
            available=False, reason=f"its availability check raised {_reason(error)}"
        )


def resolve_backend(text: str | None = None) -> tuple[Backend, ...]:
    """Turn ``-b``'s value into backends that can run here.

    Args:
        text: Names joined by ``+``, e.g. ``cpu+replay``; None or "" asks the plugins for a default.

    Raises:
        UsageError: A name is unknown or given twice; the message names the choices.
        BackendUnavailableError: A named backend cannot run on this machine.
    """
    manager = get_plugin_manager()
    offered = manager.backends()
    chosen = text or manager.default_backend()
    names = [name.strip().lower() for name in chosen.split("+")]
    backends: list[Backend] = []
    for name in names:
        if name not in offered:
            raise UsageError(_unknown_backend_message(name, manager, offered))
        backends.append(offered[name].backend)
    if len(set(names)) != len(names):
        raise UsageError(f"backend {chosen!r} names a backend twice: name each once")
    for backend in backends:
        _require_available(backend)
    return tuple(backends)


@contextlib.contextmanager
def explaining_default(text: str | None, backends: Sequence[Backend]) -> Iterator[None]:
    """Add to errors of default backends why they were chosen.

    Args:
        text: ``-b``'s value.
        backends: Result of ``resolve_backend``.
    """
    try:
        yield
    except UsageError as error:
        reasons = [backend.default_because for backend in backends if backend.default_because]
        is_misspelt = str(error).endswith("?")
        if text or not reasons or is_misspelt:
            raise
        names = "+".join(backend.name for backend in backends)
        raise UsageError(
            f"{error}. Backend {names!r} was chosen because {reasons[0]}: make one visible (see "
            "`proton doctor`), or name another backend with -b"
        ) from error


def _require_available(backend: Backend) -> None:
    availability = backend_availability(backend)
    if not availability.available:
        raise BackendUnavailableError(
            f"backend {backend.name!r} cannot run here: {availability.reason}; "
            "`proton doctor` lists those that can"
        )


def _unknown_backend_message(
    name: str, manager: PluginManager, offered: Mapping[str, OfferedBackend]
) -> str:
    known = ", ".join(sorted(offered)) or "none"
    choices = f"; choose backends from: {known} (several joined by '+')"
    message = f"Unknown profiler: {name}{did_you_mean(name, offered) or choices}"
    if manager.broken:
        broken = ", ".join(plugin.name for plugin in manager.broken)
        message += f"; broken plugins: {broken} (see `proton doctor`)"
    return message


def _add_backends(offered: dict[str, OfferedBackend], plugin: str, backends: object) -> None:
    if not isinstance(backends, Sequence):
        raise TypeError(f"proton_backends returned {type(backends).__name__}, not a list")
    for backend in backends:
        if not isinstance(backend, Backend):
            raise TypeError(f"proton_backends returned a {type(backend).__name__}, not a Backend")
        if backend.name in offered:
            other = offered[backend.name].plugin
            raise UsageError(f"backend {backend.name!r} already exists in plugin {other!r}")
        offered[backend.name] = OfferedBackend(backend, plugin)


def _module_loader(module: str) -> Callable[[], object]:
    return lambda: importlib.import_module(module)


def _entry_points() -> Sequence[EntryPoint]:
    if not may_have_plugins():
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=hookspecs.ENTRY_POINT_GROUP))


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

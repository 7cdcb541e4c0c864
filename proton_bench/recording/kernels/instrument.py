"""``--instrument``: gives the passes to the backend of a run that supports them."""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.errors import UsageError
from proton_bench.mode import encode
from proton_bench.plugin.backend import Backend, Mode, assign_modes

_OPTION = "passes"


def add_passes(backend: str | None, mode: str | None, passes: str) -> tuple[str | None, str]:
    """Return backend and mode texts with which a session brackets operations of kernels.

    Supporting backends of the session get the passes; if there is none, the first supporting one is
    added. A default backend stays implicit.

    Args:
        backend: Names joined by ``+``; None asks the plugins for their default.
        mode: Mode text without passes.
        passes: As in ``--instrument``; the backend checks them.

    Raises:
        UsageError: A backend or mode is unknown, or the mode has passes already.
        BackendUnavailableError: No backend that supports passes can run here.
    """
    from proton_bench.plugin.manager import explaining_default, resolve_backend

    backends = resolve_backend(backend)
    if not any(each.passes_mode is not None for each in backends):
        backend = "+".join([*(each.name for each in backends), _first_taker()])
        backends = resolve_backend(backend)
    with explaining_default(backend, backends):
        modes = assign_modes(backends, mode)
    texts = [_with_passes(*each, passes) for each in zip(backends, modes, strict=True)]
    return backend, "+".join(filter(None, texts))


def join_passes(option: str, given: Sequence[str]) -> str:
    """Join the values of a repeated option.

    Args:
        option: Its name, for messages.
        given: Its values.

    Raises:
        UsageError: One is empty.
    """
    if not all(each.strip() for each in given):
        raise UsageError(f"{option} names no pass: write e.g. {option}=loops,loads")
    return ",".join(given)


def _first_taker() -> str:
    from proton_bench.plugin.manager import backend_availability, get_plugin_manager

    offered = get_plugin_manager().backends().values()
    takers = [each.backend for each in offered if each.backend.passes_mode is not None]
    return _best(takers, [backend_availability(each).available for each in takers])


def _best(takers: Sequence[Backend], available: Sequence[bool]) -> str:
    # Prefer one that records devices: kernels on the host are interpreted.
    ranked = sorted(
        zip(takers, available, strict=True), key=lambda each: (each[0].records_wall, not each[1])
    )
    if not ranked:
        raise UsageError("no backend here supports passes; `proton doctor` lists the backends")
    return ranked[0][0].name


def _with_passes(backend: Backend, mode: Mode, passes: str) -> str:
    if backend.passes_mode is None:
        return mode.text
    if _OPTION in mode.options:
        raise UsageError(
            f"passes are given twice, with --instrument and in mode {mode.text!r}: give them once"
        )
    return f"{mode.text or backend.passes_mode}:{_OPTION}={encode(passes)}"

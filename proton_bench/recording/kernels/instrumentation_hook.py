"""Upstream's hook that makes kernels compile with records.

Our own sessions do not need this hook: the collector of the backend ``instrumentation`` costs
launches nothing in Python. But programs such as torch's Inductor check the active hooks for
instrumentation, register such a hook themselves, and read the buffer of a launch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar

from proton_bench import mode
from proton_bench.errors import BackendUnavailableError, UsageError
from proton_bench.flags import flags
from proton_bench.mode import MMA, Default, InstrumentationMode
from proton_bench.plugin.backend import assign_modes, parse_mode
from proton_bench.recording.context.state import metadata_state
from proton_bench.recording.kernels.hooks import Hook, HookManager, LaunchMetadata
from proton_bench.recording.session.collectors import CollectorLease, lease_collectors

__all__ = [
    "VERSION",
    "Hook",
    "InstrumentationHook",
    "flags",
    "metadata_state",
    "mode",
    "pack_header",
]

# Of the layout of host buffers.
VERSION = 1

_BACKEND = "instrumentation"
_MODES: dict[str, Callable[..., InstrumentationMode]] = {"default": Default, "mma": MMA}
_DEVICE_TYPES = {"cuda": 1, "hip": 2}
_SWITCH = "enable_host_buffer"


class _Switched(type):
    """Notifies the collector when a script sets ``enable_host_buffer``; launches do not check."""

    def __setattr__(cls, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == _SWITCH:
            for follow in [*InstrumentationHook.followers]:
                follow(bool(value))


class InstrumentationHook(Hook, metaclass=_Switched):
    """Makes kernels compile with records and collects these while it is active.

    Args:
        mode_obj: Text or object of a mode; None and "" are the default.

    Attributes:
        active_count: 1 while kernels are instrumented, by a hook or a session.
        enable_host_buffer: Whether to wait for each launch and keep its kernel's buffer.
        host_buffer: Buffer of the newest instrumented launch, after a header; a tensor of bytes.
        mode: The mode.

    Raises:
        UsageError: The mode or option does not exist.
    """

    priority: int = 0
    is_called = False
    active_count: ClassVar[int] = 0
    enable_host_buffer: ClassVar[bool] = False
    host_buffer: ClassVar[Any] = None
    followers: ClassVar[list[Callable[[bool], None]]] = []
    # Least size of buffers of launches, in bytes.
    profile_buffer_size: int = 1
    profile_buffer_alignment: int = 128

    def __init__(self, mode_obj: str | InstrumentationMode | None = None) -> None:
        self.mode = _interpreted(mode_obj)
        self._lease: CollectorLease | None = None

    def activate(self) -> None:
        """Begin; the hook manager calls it.

        Raises:
            BackendUnavailableError: Kernels are already instrumented, or cannot be.
        """
        if InstrumentationHook.active_count > 0:
            raise BackendUnavailableError(
                "Only one instance of the instrumentation hook can be active at a time: finalize "
                "the session or unregister the hook that instruments kernels now"
            )
        from proton_bench.plugin.manager import resolve_backend

        InstrumentationHook.active_count += 1
        try:
            backends = resolve_backend(_BACKEND)
            modes = assign_modes(backends, str(self.mode))
            self._lease = lease_collectors("an instrumentation hook", backends, modes)
            self._lease.start()
        except BaseException:
            self._release()
            raise

    def deactivate(self) -> None:
        """End, if the hook is active."""
        if self._lease is not None:
            self._release()

    def _release(self) -> None:
        lease, self._lease = self._lease, None
        InstrumentationHook.active_count -= 1
        InstrumentationHook.host_buffer = None
        if lease is not None:
            lease.release()

    @classmethod
    def announce(cls) -> Callable[[], None]:
        """Show programs that kernels are instrumented, unless an active hook does.

        Returns:
            A function that undoes it.
        """
        if InstrumentationHook.active_count > 0:
            return lambda: None
        hook = cls()
        InstrumentationHook.active_count += 1
        HookManager.active_hooks = [*HookManager.active_hooks, hook]

        def disappear() -> None:
            HookManager.active_hooks = [each for each in HookManager.active_hooks if each != hook]
            hook._release()

        return disappear

    def init_handle(  # noqa: PLR0917 - Triton's signature
        self, module: Any, function: Any, name: str, metadata_group: Any, hash: str
    ) -> None:
        """Do nothing: the collector learns it from Triton."""

    def enter(self, metadata: LaunchMetadata) -> None:
        """Do nothing: the collector learns it from Triton."""

    def exit(self, metadata: LaunchMetadata) -> None:
        """Do nothing: the collector learns it from Triton."""


def pack_header(
    payload_bytes: int, *, device: str, warps: int, scratch_bytes: int, warp_ids: tuple[int, ...]
) -> bytes:
    """Return the header of a host buffer: ten numbers, then warps.

    Args:
        payload_bytes: Bytes of the records.
        device: ``cuda`` or ``hip``.
        warps: Warps of a program.
        scratch_bytes: Bytes of the records of each program.
        warp_ids: Warps that record; none means all.
    """
    ids = warp_ids or tuple(range(warps))
    size = 4 * (10 + len(ids))
    programs = payload_bytes // scratch_bytes if scratch_bytes else 0
    places = (VERSION, 4, size, size, payload_bytes)
    shape = (_DEVICE_TYPES.get(device, 0), programs, warps, scratch_bytes, len(ids))
    return struct.pack(f"{10 + len(ids)}I", *places, *shape, *ids)


def _interpreted(wanted: str | InstrumentationMode | None) -> InstrumentationMode:
    if isinstance(wanted, InstrumentationMode):
        return wanted
    text = str(wanted or "default")
    name, *options = text.split(":")
    malformed = next((each for each in options if "=" not in each), None)
    if malformed is not None:
        raise UsageError(f"Malformed instrumentation option: {malformed!r}; write key=value")
    if name not in _MODES:
        raise UsageError(f"Unknown mode: {text}; choose from: {', '.join(_MODES)}")
    given: dict[str, Any] = dict(parse_mode(text).options)
    known = {field.name for field in fields(InstrumentationMode)}
    for option in given.keys() - known:
        raise UsageError(f"mode {name} has no option {option!r}; choose from: {sorted(known)}")
    given.update({key: int(given[key]) for key in ("buffer_size", "byte_limit") if key in given})
    if "compare" in given:
        given["compare"] = given["compare"] != "off"
    return _MODES[name](**given)

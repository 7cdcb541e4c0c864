"""Switches the compilation of kernels with records on and off."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from proton_bench.errors import UsageError
from proton_bench.flags import flags
from proton_bench.recording.kernels.kernel_records import MODE_PREFIX
from proton_bench_plugins.instrumentation.compiler.registration import BACKENDS, register
from proton_bench_plugins.instrumentation.compiler.stages import Inserting, Stages
from proton_bench_plugins.instrumentation.settings import Settings
from proton_bench_plugins.patch import Patch

_DROPPED = ".maxnreg"


class Compilation:
    """Makes Triton compile kernels with records between ``attach`` and ``detach``.

    The digest of everything that affects their code is an option of each compile, and so part of
    the keys of Triton's caches in memory and on disk: kernels with and without records, and of
    different modes, are kept side by side.

    Args:
        settings: Options of the mode.
        inserter: Puts further records into each kernel.
    """

    def __init__(self, settings: Settings, inserter: Inserting | None = None) -> None:
        # Scopes of the source become records under this prefix only; a plugin's mode has others.
        prefix = f"{MODE_PREFIX[:-1]}.{settings.custom.name}:" if settings.custom else MODE_PREFIX
        self.mode = prefix + settings.digest(inserter.digest if inserter else "")
        self._stages = Stages(self.mode, settings, inserter)
        self._undo = contextlib.ExitStack()
        self._is_attached = False

    def attach(self) -> None:
        """Begin, unless it has begun. Imports Triton.

        Raises:
            UsageError: Another profiler or one of Triton's sanitizers instruments kernels.
        """
        if self._is_attached:
            return
        knobs: Any = importlib.import_module("triton.knobs")
        importlib.import_module("triton.compiler")
        with contextlib.ExitStack() as undo:
            self._set_mode(knobs, undo)
            undo.callback(register(self._stages))
            self._set_hook(knobs, undo)
            self._patch_options(undo)
            undo.callback(setattr, flags, "instrumentation_on", flags.instrumentation_on)
            flags.instrumentation_on = True
            self._undo = undo.pop_all()
        self._is_attached = True

    def detach(self) -> None:
        """End, and restore the previous state."""
        self._is_attached = False
        self._undo.close()

    def _set_mode(self, knobs: Any, undo: contextlib.ExitStack) -> None:
        before = knobs.compilation.instrumentation_mode
        if before:
            raise UsageError(
                f"Triton's instrumentation_mode is {before!r} already, but a kernel can have only "
                "one mode: unset TRITON_INSTRUMENTATION_MODE for this run"
            )

        def restore() -> None:
            if knobs.compilation.instrumentation_mode == self.mode:
                knobs.compilation.instrumentation_mode = before

        knobs.compilation.instrumentation_mode = self.mode
        undo.callback(restore)

    def _set_hook(self, knobs: Any, undo: contextlib.ExitStack) -> None:
        before = knobs.runtime.add_stages_inspection_hook

        def restore() -> None:
            if knobs.runtime.add_stages_inspection_hook is self._stages:
                knobs.runtime.add_stages_inspection_hook = before

        self._stages.chain(before)
        knobs.runtime.add_stages_inspection_hook = self._stages
        undo.callback(restore)

    def _patch_options(self, undo: contextlib.ExitStack) -> None:
        backends = importlib.import_module("triton.backends").backends
        for name in BACKENDS:
            if name in backends:
                patch = Patch(backends[name].compiler, "parse_options", self._parse_options)
                undo.callback(patch.remove)

    def _parse_options(self, original: Any, backend: Any, options: Any) -> Any:
        # A library that compiles by itself gives no mode; its kernel gets records too, and must
        # then be found under a key of its own.
        given = {"instrumentation_mode": self.mode, **options}
        parsed = original(backend, given)
        dropped = options.get("maxnreg")
        if dropped is None or getattr(parsed, "maxnreg", dropped) is not None:
            return parsed
        # Triton drops the limit of registers where there is a mode, and would take kernels with
        # and without it for one; in the mode it stays part of the key, and can be reported.
        return original(
            backend, {**given, "instrumentation_mode": f"{self.mode}{_DROPPED}{dropped}"}
        )


def dropped_maxnreg(mode: str) -> int | None:
    """Return the limit of registers that Triton dropped because of records, or None.

    Args:
        mode: ``instrumentation_mode`` of a compiled kernel.
    """
    digits = mode.partition(_DROPPED)[2]
    return int(digits) if digits.isdigit() else None

"""The stages of a compile for a session.

Triton calls a hook with the stages of each compile; ours wraps two of them, after those of an
earlier hook. Passes are added only while one of our stages runs on the thread.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from proton_bench.errors import ProtonError, UsageError
from proton_bench.plugin.kernel_mode import KernelPasses
from proton_bench_plugins.instrumentation.compiler import pipeline
from proton_bench_plugins.instrumentation.compiler.records import (
    check_records,
    check_warps,
    has_records,
)
from proton_bench_plugins.instrumentation.compiler.space import check_space, needed_bytes
from proton_bench_plugins.instrumentation.compiler.target import Target, describe_target
from proton_bench_plugins.instrumentation.settings import Settings

__all__ = ["LEFT_OUT", "TAKEN", "Inserting", "Stages"]

# Results of passes on a kernel, kept with it in Triton's cache.
LEFT_OUT = "scopes_left_out"
TAKEN = "passes_taken"
_Stage = Callable[[Any, dict[str, Any]], Any]


class Inserting(Protocol):
    """Puts records into kernels, as ``passes.Inserter`` does."""

    @property
    def digest(self) -> str:
        """A text that identifies the inserted records."""

    def insert(self, module: Any, *, kernel: str) -> Any:
        """Insert records into TTGIR."""


class _Compile(threading.local):
    """The current compile of this thread."""

    target: Target | None = None
    passes: KernelPasses | None = None
    room_bytes: int | None = None


class Stages:
    """Triton's hook for stages, and the callbacks for passes, of one mode.

    Args:
        mode: Text in the options of the compiles that are meant.
        settings: Options of the mode.
        inserter: Puts further records into each kernel.
    """

    def __init__(self, mode: str, settings: Settings, inserter: Inserting | None) -> None:
        self._mode = mode
        self._settings = settings
        self._inserter = inserter
        self._older: Callable[..., Any] | None = None
        self._compile = _Compile()
        self._key = (mode, hashlib.sha256(mode.encode()).hexdigest())

    def chain(self, older: Callable[..., Any] | None) -> None:
        """Call another hook first from now on."""
        self._older = older

    def __call__(  # noqa: PLR0917 - Triton's signature
        self,
        backend: Any = None,
        stages: dict[str, _Stage] | None = None,
        options: Any = None,
        language: Any = None,
        capability: Any = None,
    ) -> tuple[str, str] | None:
        """Wrap the stages of a compile, or return their part of its key."""
        if stages is None:
            return self._full_key()
        if self._older is not None:
            self._older(backend, stages, options, language, capability)
        if str(getattr(options, "instrumentation_mode", "")).startswith(self._mode):
            target = describe_target(backend.target.backend, backend.target.arch)
            if "ttgir" in stages:
                stages["ttgir"] = self._inserting(stages["ttgir"])
            stages["llir"] = self._lowering(stages["llir"], target)
        return None

    def load_dialects(self, context: Any) -> None:
        """Make the dialects of records known to a context."""
        from triton._C.libtriton import proton

        proton.load_dialects(context)

    def lower_ttgir(self, pm: Any, backend: str) -> None:
        """Add passes before TTGIR becomes LLVM's dialect."""
        if self._compile.target is None:
            return
        if self._compile.passes is not None:
            self._compile.passes.lower_ttgir(pm, backend, self._compile.target.arch)
        else:
            pipeline.add_ttgir_passes(
                pm, self._settings, self._compile.target, room_bytes=self._compile.room_bytes
            )

    def lower_llvm(self, pm: Any, backend: str) -> None:
        """Add passes after it."""
        if self._compile.target is None:
            return
        if self._compile.passes is not None:
            self._compile.passes.lower_llvm(pm, backend, self._compile.target.arch)
        else:
            pipeline.add_llvm_passes(pm, self._compile.target)

    def _full_key(self) -> tuple[str, str]:
        if self._older is None:
            return self._key
        key, digest = self._older()
        return f"{key}{self._key[0]}", f"{digest}{self._key[1]}"

    def _inserting(self, inner: _Stage) -> _Stage:
        def stage(source: Any, metadata: dict[str, Any]) -> Any:
            module = inner(source, metadata)
            kernel = _name(module)
            self.load_dialects(module.context)
            if self._settings.custom is not None:
                passes = self._settings.custom.passes(self._settings.custom_options)
                module = passes.rewrite(module, kernel)
            elif self._inserter is not None:
                inserted = self._inserter.insert(module, kernel=kernel)
                if left_out := len(getattr(inserted, "left_out", ())):
                    metadata[LEFT_OUT] = left_out
                metadata[TAKEN] = ",".join(getattr(inserted, "taken", ()))
            return module

        return stage

    def _lowering(self, inner: _Stage, target: Target) -> _Stage:
        def stage(module: Any, metadata: dict[str, Any]) -> Any:
            if self._settings.custom is not None:
                passes = self._settings.custom.passes(self._settings.custom_options)
                with self._at_work(target, passes):
                    return inner(module, metadata)
            text = module.str_nodebug()
            if not has_records(text):
                return inner(module, metadata)
            kernel = _name(module)
            check_records(text, kernel, self._settings)
            room_bytes = needed_bytes(text, self._settings)
            with (
                self._at_work(target, room_bytes=room_bytes),
                _rejections(kernel, self._settings),
            ):
                lowered = inner(module, metadata)
            check_warps(int(metadata["num_warps"]), kernel, self._settings)
            check_space(kernel, metadata, target, settings=self._settings)
            return lowered

        return stage

    @contextmanager
    def _at_work(
        self,
        target: Target,
        passes: KernelPasses | None = None,
        room_bytes: int | None = None,
    ) -> Iterator[None]:
        at_work = self._compile
        at_work.target, at_work.passes, at_work.room_bytes = target, passes, room_bytes
        try:
            yield
        finally:
            at_work.target = at_work.passes = at_work.room_bytes = None


@contextmanager
def _rejections(kernel: str, settings: Settings) -> Iterator[None]:
    try:
        yield
    except ProtonError:
        raise
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        if settings.buffer_size:
            reason += (
                "; buffer_size must be a power of two per recording warp, which in a "
                "warp-specialized kernel are the warps of all partitions"
            )
        raise UsageError(
            f"kernel {kernel!r} cannot be compiled with records in mode {settings.mode!r} "
            f"(buffer_type={settings.buffer_type}, buffer_size={settings.buffer_size}): {reason}; "
            "the compiler's own message is above, on stderr"
        ) from error


def _name(module: Any) -> str:
    return str(module.get_entry_func_name())

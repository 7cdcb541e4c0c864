"""Reads launch metadata of Triton kernels and adds it to the kernel's node."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from proton_bench import _native
from proton_bench.errors import MetricError, UsageError
from proton_bench.recording.context.metric import Metric, normalize_metrics
from proton_bench.recording.kernels.hooks import Hook
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.stderr import say
from proton_bench_plugins.triton.graph_values import metadata_of
from proton_bench_plugins.triton.late_values import LateValues, is_late

if TYPE_CHECKING:
    from proton_bench_plugins.triton.code_bytes import CodeBytes


_COMPILER = "triton.compiler.compiler"


class LaunchHook(_native.launch_hook, Hook):
    """Names each launch and adds the numbers of its ``launch_metadata`` as metrics.

    There is one instance per process. Launches of ``launch_metadata`` itself are below
    ``__proton_launch_metadata`` > kernel. If ``launch_metadata`` raises, stderr has one message per
    kernel, and the launch continues without it. Tensors on a device are copied to the host in the
    order of their stream; nothing waits for them until the session is flushed. ``code_bytes`` is
    what the kernel's code asks for.

    ``enter`` and ``exit`` are native; the methods here are called for what is rare.
    """

    priority = 100
    # Numbers that upstream's reports use; other metadata is added too.
    flops_width = (8, 16, 32, 64)
    metrics = (*(f"flops{width}" for width in flops_width), "bytes", "flops")
    _instance: LaunchHook | None = None

    def __new__(cls) -> LaunchHook:
        """Return the instance of this process."""
        if cls._instance is None:
            made = super().__new__(cls)
            made._reported = set()
            made._late = LateValues(made.report)
            made._code_bytes = None
            made._undo = contextlib.ExitStack()
            made.configure()
            cls._instance = made
        return cls._instance

    _reported: set[str]
    _late: LateValues
    _code_bytes: CodeBytes | None
    _undo: contextlib.ExitStack
    _include: re.Pattern[str] | None
    _exclude: re.Pattern[str] | None

    def configure(self, *, include: str | None = None, exclude: str | None = None) -> None:
        """Choose kernels by name, until the last session that uses the hook is finalized.

        Args:
            include: Regular expression that the beginning of a kernel's name must match.
            exclude: Regular expression that it must not match.

        Raises:
            UsageError: An expression is malformed.
        """
        self._include, self._exclude = _compiled("include", include), _compiled("exclude", exclude)
        self.set_filtered(include is not None or exclude is not None)

    def init_handle(  # noqa: PLR0917 - Triton's signature
        self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None:
        """Do nothing: a launch has everything needed."""

    def activate(self) -> None:
        """Begin to watch the code of kernels; the hook manager connects the hook itself."""
        self._undo.callback(ImportCallback(_COMPILER, self._watch).cancel)

    def deactivate(self) -> None:
        """Stop watching; a running launch still gets its exit."""
        self._undo.close()

    def _watch(self, compiler: ModuleType) -> None:
        # Imported only now, because a program without Triton may not need numpy.
        from proton_bench_plugins.triton.code_bytes import CodeBytes

        if self._code_bytes is None:
            self._code_bytes = CodeBytes()
        try:
            self._undo.callback(self._code_bytes.watch(compiler))
        except Exception as error:  # noqa: BLE001 - the target's import must not fail because of us
            say(f"warning: no code_bytes of Triton's kernels: {type(error).__name__}: {error}")

    def flush(self) -> None:
        """Wait for pending metrics of a device."""
        self._late.collect(waiting=True)

    def release(self) -> None:
        """Reset the filters, the reported kernels and pending values."""
        self._reported.clear()
        self._late.clear()
        self.configure()

    def wants(self, name: str) -> bool:
        """Return whether the filters match a kernel."""
        if self._include is not None and self._include.match(name) is None:
            return False
        return self._exclude is None or self._exclude.match(name) is None

    def stage(self, kernel: str, values: Mapping[Any, Any]) -> tuple[Any, Any] | None:
        """Read values that are not plain numbers, still in the state of the launch metadata.

        Returns:
            The argument of `add_staged` when the kernel's frame is open, or None.
        """
        # Under capture nothing is copied now: each launch of the graph writes its values.
        is_captured = _native.is_capturing()
        late = {key: value for key, value in values.items() if is_late(value) and not is_captured}
        with metadata_of(kernel):
            ready = self._read(kernel, {key: values[key] for key in values if key not in late})
        copies = self._late.copy(kernel, late) if late else []
        return (ready, copies) if ready or copies else None

    def _read(self, kernel: str, values: Mapping[Any, Any]) -> list[Metric]:
        ready: list[Metric] = []
        for key, value in values.items():
            if _is_number(value):
                try:
                    ready += normalize_metrics({key: value})
                except MetricError as error:
                    self.report(kernel, str(error))
        return ready

    def add_staged(self, kernel: str, staged: tuple[Any, Any]) -> None:
        """Add the result of `stage` to the kernel whose frame is open."""
        ready, copies = staged
        if ready:
            try:
                _native.add_metrics(ready)
            except MetricError as error:
                self.report(kernel, str(error))
        if copies:
            self._late.expect(kernel, copies)

    def report(self, kernel: str, error: BaseException | str) -> None:
        """Count lost metadata, and report it once per kernel."""
        _native.add_dropped("launch metadata", 1)
        if kernel in self._reported:
            return
        self._reported.add(kernel)
        if isinstance(error, BaseException):
            error = f"launch_metadata raised {_described(error)}"
        say(f"warning: no launch metadata of kernel {kernel!r}: {error}")


def _compiled(what: str, pattern: str | None) -> re.Pattern[str] | None:
    if not pattern:
        return None
    try:
        return re.compile(pattern)
    except (re.error, TypeError) as error:
        raise UsageError(
            f"{what} pattern {pattern!r} is not a regular expression: {error}; write one that "
            "matches the beginning of kernel names"
        ) from None


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - the text of an exception is code of the target
        return type(error).__name__


def _is_number(value: object) -> bool:
    is_array = hasattr(value, "tolist")
    return is_array or (hasattr(value, "__float__") and not isinstance(value, type))

"""Pauses for torch.profiler, because CUPTI serves one profiler per process at a time.

Kineto does not coordinate: its subscription would fail, or it would take over the activity buffers
and switch kernels off at its end. So the target's own profiler gets CUPTI while it records.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench_plugins.patch import Patch

__all__ = ["ProfilerWatch", "gpu_profile_is_open"]

_MODULE = "torch.autograd.profiler"
_BEGINNINGS = ("_prepare_profiler", "_enable_profiler")
_END = "_disable_profiler"


def gpu_profile_is_open() -> bool:
    """Whether torch.profiler is recording the GPU in this process."""
    module = sys.modules.get(_MODULE)
    if not getattr(module, "_is_profiler_enabled", False):
        return False
    kind = getattr(module, "profile", None)
    # Torch does not say what it records, but its open profiler object does.
    return any(
        type(each) is kind
        and getattr(each, "kineto_results", None) is None
        and _has_gpu(getattr(each, "kineto_activities", ()))
        for each in gc.get_objects()
    )


class ProfilerWatch:
    """Notifies when torch.profiler begins and ends recording the GPU.

    Args:
        begins: Called before torch uses CUPTI; may be called twice for one recording.
        ends: Called after torch's recording has ended, or did not begin.
    """

    def __init__(self, begins: Callable[[], None], ends: Callable[[], None]) -> None:
        self._begins = begins
        self._ends = ends
        self._undo = contextlib.ExitStack()

    def attach(self) -> None:
        """Watch torch, even if it is imported later."""
        self._undo.callback(ImportCallback(_MODULE, self._patch).cancel)

    def detach(self) -> None:
        """Stop watching; a second call does nothing."""
        self._undo.close()

    def _patch(self, module: ModuleType) -> None:
        for name in _BEGINNINGS:
            if callable(vars(module).get(name)):
                self._undo.callback(Patch(module, name, self._begin).remove)
        if callable(vars(module).get(_END)):
            self._undo.callback(Patch(module, _END, self._end).remove)

    def _begin(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        activities = kwargs.get("activities", args[1] if len(args) > 1 else ())
        if not _has_gpu(activities):
            return original(*args, **kwargs)
        self._begins()
        try:
            return original(*args, **kwargs)
        except BaseException:
            self._ends()
            raise

    def _end(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            self._ends()


def _has_gpu(activities: Iterable[object]) -> bool:
    return any(getattr(each, "name", "") == "CUDA" for each in activities)

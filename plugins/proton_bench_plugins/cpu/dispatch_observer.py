"""The slower way to see torch operators, for a torch whose native observer cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proton_bench._native import CpuCollector

__all__ = ["DispatchObserver"]


class DispatchObserver:
    """Reports operators of the starting thread, and of autograd on its behalf, to the collector.

    It sees operators where they reach the dispatcher below autograd: single kernels, without the
    composite operators that call them.
    """

    def __init__(self, collector: CpuCollector) -> None:
        self._mode = _make_mode(collector)
        self._mode.__enter__()

    def remove(self) -> None:
        """Stop observing; call it on the thread that made the observer."""
        from torch.utils import _python_dispatch

        self._mode.active = False
        # The target may have entered a mode of its own above ours; only the top one may leave.
        if _python_dispatch._get_current_dispatch_mode() is self._mode:
            self._mode.__exit__(None, None, None)


def _make_mode(collector: CpuCollector) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class OperatorMode(TorchDispatchMode):  # type: ignore[misc]
        """Calls the collector around every operator."""

        active = True

        def __torch_dispatch__(
            self, function: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if not self.active:
                return function(*args, **(kwargs or {}))
            # "aten::add.Tensor": the overload would tear one operator into several nodes.
            collector.enter_op(function.name().partition(".")[0])
            try:
                return function(*args, **(kwargs or {}))
            finally:
                collector.exit_op()

    return OperatorMode()

"""The canary of NVIDIA GPUs: a loop of dependent FMAs that counts cycles over the global timer.

That gives the clock of the multiprocessors. It is launched through the driver and not through a
library of the target, so allocator, random generators and compiled kernels are unaffected.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from proton_bench.plugin.canary import ScopeMaker, Ticks
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench_plugins.cupti.canary.driver import Driver
from proton_bench_plugins.cupti.canary.kernel import CanaryKernel
from proton_bench_plugins.patch import Patch

__all__ = ["TorchCanary"]

# A clock is steady if this many launches in a row differ at most by this share.
_STEADY_LAUNCHES = 8
_STEADY = 0.002
_MOST_WARM_UP = 300
_COUNTED = 10


class TorchCanary:
    """Runs when torch starts CUDA; in other programs only at their end."""

    def __init__(self) -> None:
        self._import: ImportCallback | None = None
        self._patch: Patch | None = None
        self._due: Callable[[], None] | None = None

    def watch(self, due: Callable[[], None]) -> None:
        """Call back once torch has started CUDA."""
        self._due = due
        self._import = ImportCallback("torch.cuda", self._attach)

    def unwatch(self) -> None:
        """Detach from torch."""
        self._due = None
        if self._import is not None:
            self._import.cancel()
        if self._patch is not None:
            self._patch.remove()

    def launch(self, scope: ScopeMaker, names: tuple[str, str]) -> Ticks | None:
        """Launch on the first device that the target uses; see `Canary.launch`."""
        driver = Driver.loaded()
        device = None if driver is None else driver.device_in_use()
        if driver is None or device is None:
            return None
        around, warming = names
        with CanaryKernel(driver, device) as kernel, scope(around):
            with scope(warming):
                _warm_up(kernel)
            counted = [kernel.launch() for _ in range(_COUNTED)]
        cycles, ns = (sum(each[place] for each in counted) for place in (0, 1))
        return Ticks(cycles, ns, _COUNTED)

    def _attach(self, module: ModuleType) -> None:
        cuda: Any = module
        if cuda.is_initialized():
            self._tell()
        elif hasattr(cuda, "_lazy_init"):
            self._patch = Patch(module, "_lazy_init", self._around_start)

    def _around_start(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        import torch.cuda

        if torch.cuda.is_initialized():  # else it is called by its own start
            if self._patch is not None:
                self._patch.remove()
            self._tell()
        return result

    def _tell(self) -> None:
        due, self._due = self._due, None
        if due is not None:
            due()


def _warm_up(kernel: CanaryKernel) -> None:
    """Launch until the clock is steady."""
    clocks: list[float] = []
    for _ in range(_MOST_WARM_UP):
        cycles, ns = kernel.launch()
        clocks.append(cycles / max(ns, 1))
        last = clocks[-_STEADY_LAUNCHES:]
        if len(last) == _STEADY_LAUNCHES and max(last) - min(last) <= _STEADY * max(last):
            return

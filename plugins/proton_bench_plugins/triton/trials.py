"""Separates launches that try a configuration from the program's own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from proton_bench import _native
from proton_bench_plugins.patch import Patch
from proton_bench_plugins.triton import codes

AUTOTUNE_STATE = "<autotune>"

_trial = threading.local()


def config_of_trial() -> str:
    """Return the configuration that this thread is trying, or ""."""
    return getattr(_trial, "config", "")


def watch_triton(module: ModuleType) -> list[Patch]:
    """Put trials of ``@triton.autotune`` under the state.

    Args:
        module: ``triton.runtime.autotuner``.
    """
    return [Patch(module.Autotuner, "_bench", _try_triton)]


def watch_choices(module: ModuleType) -> list[Patch]:
    """Note what it chose, at each launch.

    Args:
        module: The same.
    """
    return [Patch(module.Autotuner, "run", _run_chosen)]


def watch_inductor(module: ModuleType) -> list[Patch]:
    """Do the same for Inductor, which has its own code for this.

    Args:
        module: ``torch._inductor.runtime.triton_heuristics``.
    """
    results = [each for each in vars(module).values() if "make_launcher" in _methods(each)]
    return [
        Patch(module.CachingAutotuner, "bench", _try_inductor),
        *(Patch(result, "make_launcher", _make_launcher) for result in results),
    ]


def watch_benchmarks(module: ModuleType) -> list[Patch]:
    """Put what Inductor times under the state: its trials are not all of Triton kernels.

    Args:
        module: ``torch._inductor.runtime.benchmarking``.
    """
    names = ("benchmark_gpu", "benchmark_gpu_with_cuda_graph")
    return [
        Patch(each, name, _in_state)
        for each in vars(module).values()
        for name in names
        if name in _methods(each)
    ]


def _methods(candidate: object) -> Any:
    return vars(candidate) if isinstance(candidate, type) else ()


def _in_state(run: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    _native.enter_state(AUTOTUNE_STATE)
    try:
        return run(*args, **kwargs)
    finally:
        _native.exit_state()


def _in_trial(config: object, run: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    outer = config_of_trial()
    _trial.config = codes.config_text(config)
    try:
        return _in_state(run, *args, **kwargs)
    finally:
        _trial.config = outer


def _try_triton(original: Any, *args: Any, **kwargs: Any) -> Any:
    return _in_trial(kwargs.get("config"), original, *args, **kwargs)


def _try_inductor(original: Any, tuner: Any, launcher: Any, *args: Any, **kwargs: Any) -> Any:
    config = getattr(launcher, "config", None)
    return _in_trial(config, original, tuner, launcher, *args, **kwargs)


def _run_chosen(original: Any, tuner: Any, *args: Any, **kwargs: Any) -> Any:
    kernel = original(tuner, *args, **kwargs)
    codes.note(kernel, getattr(tuner, "best_config", None))
    return kernel


def _make_launcher(original: Any, result: Any, *args: Any, **kwargs: Any) -> Any:
    launcher = original(result, *args, **kwargs)
    codes.note(getattr(result, "kernel", None), getattr(result, "config", None))
    return launcher

"""The launch hook ``triton``: names launches and records what ``launch_metadata`` returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from proton_bench.plugin import hookimpl

__all__ = ["proton_launch_hooks"]


@hookimpl
def proton_launch_hooks() -> Mapping[str, Callable[[], object]]:
    """Offer ``-k triton`` and ``start(hook="triton")``."""
    from proton_bench_plugins.triton.launch_hook import LaunchHook

    return {"triton": LaunchHook}

"""Triton's kernels: the launch hook ``triton``, autotuner trials, and codes of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from proton_bench.plugin import SessionFacts, hookimpl
from proton_bench.recording.kernels.hooks import rest_listeners
from proton_bench_plugins.triton.observer import Observer

_observer = Observer()
rest_listeners.append(_observer.rest)


@hookimpl
def proton_launch_hooks() -> Mapping[str, Callable[[], object]]:
    """Offer ``-k triton`` and ``start(hook="triton")``."""
    from proton_bench_plugins.triton.launch_hook import LaunchHook

    return {"triton": LaunchHook}


@hookimpl
def proton_session_started(session: SessionFacts) -> None:
    """Observe Triton from the first session on."""
    _observer.begin(session.id)


@hookimpl
def proton_session_finished(session: SessionFacts, paths: Sequence[Path]) -> None:
    """Detach from Triton after the last session."""
    del paths
    _observer.end(session.id)

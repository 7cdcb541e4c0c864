"""Scopes, under upstream's submodule name; ``proton_bench.scope`` itself is the class."""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.flags import flags
from proton_bench.metric import set_metric_kernels, transform_tensor_metrics
from proton_bench.recording.context.scope import (
    cpu_timed_scope,
    enter_scope,
    exit_scope,
    scope,
    thread_local_scopes,
)
from proton_bench.recording.context.state import metadata_state

__all__ = [
    "MetricValueType",
    "cpu_timed_scope",
    "enter_scope",
    "exit_scope",
    "flags",
    "metadata_state",
    "scope",
    "set_metric_kernels",
    "thread_local_scopes",
    "transform_tensor_metrics",
]

MetricValueType = float | int | Sequence[float] | Sequence[int]

"""What is written while a session records: its timeline, and phases that are over."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from proton_bench.recording.job_ranks import rank_facts
from proton_bench.recording.native import native
from proton_bench.recording.session.options import CapturePlan

__all__ = ["drift_of", "write_meanwhile"]

_DRIFT = "clock_drift_ns"


def write_meanwhile(core: native.Session, plan: CapturePlan) -> None:
    """Have the native writer thread write what the plan asks for; nothing starts it otherwise.

    Args:
        core: A session that is not active yet.
        plan: What it records.

    Raises:
        BackendUnavailableError: The thread cannot be started.
    """
    path = os.fsencode(plan.path)
    if plan.trace_formats:
        core.stream_timeline(path, plan.trace_formats, _facts(plan))
    if plan.flushing is not None:
        is_streamed = plan.flushing.format in plan.trace_formats
        tree_format = "" if is_streamed else plan.flushing.format
        core.close_phases(path, tree_format, True, plan.flushing.interval_s)  # noqa: FBT003
    elif plan.trace_formats:
        core.close_phases(path, "", False, 0.0)  # noqa: FBT003


def drift_of(collectors: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how much the clock of the devices gained on the host's, nanoseconds.

    Args:
        collectors: Facts of each collector; the largest drift counts.
    """
    drifts = [int(facts[_DRIFT]) for facts in collectors.values() if _DRIFT in facts]
    return max(drifts, key=abs, default=0)


def _facts(plan: CapturePlan) -> dict[str, Any]:
    return {
        "process_name": plan.program,
        "host": os.uname().nodename,
        "keeps_kernel_scopes": plan.keeps_kernel_scopes,
        "upstream_shape": plan.upstream_shape,
        **rank_facts(os.environ),
    }

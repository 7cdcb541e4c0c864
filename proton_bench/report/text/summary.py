"""A run in a few lines: recorded against wall time, the hottest paths, what to do next."""

from __future__ import annotations

import shlex

from proton_bench.analysis.accounting.device_use import device_verdicts
from proton_bench.analysis.accounting.host_time import own_lines, run_time_of
from proton_bench.analysis.why.verdict import has_counters
from proton_bench.model.profile import Profile
from proton_bench.report.text.hottest import hottest_paths
from proton_bench.report.words.header import device_line, losses, recorded_line
from proton_bench.support.text import visible

__all__ = ["summary_lines"]

_MOST_PATHS = 5
_MOST_DEVICES = 8
_MAX_NAME = 80


def summary_lines(profile: Profile, file: str = "", width: int | None = None) -> list[str]:
    """Return the first answer of a profile, as lines that are safe to print.

    Args:
        profile: What was recorded.
        file: Its file, for the commands that show more; "" for none.
        width: Characters of a line, None for any number.
    """
    verdicts = device_verdicts(profile)
    lines = [device_line(verdict) for verdict in verdicts[:_MOST_DEVICES]]
    if len(verdicts) > _MOST_DEVICES:
        lines.append(f"{len(verdicts) - _MOST_DEVICES} more devices")
    lines += filter(None, [recorded_line(profile), _idle_line(profile)])
    lines += losses(profile)
    lines += hottest_paths(profile, _MOST_PATHS, width)
    if file:
        shown = shlex.quote(file)
        why = f", proton why {shown}" if has_counters(profile) else ""
        lines.append(f"more: proton view {shown}{why}, or proton report {shown} for a page")
    return lines


def _idle_line(profile: Profile) -> str:
    """Return what the main thread did while no device worked, by lines of own code."""
    times = run_time_of(profile)
    if not times.wall_ns or not times.gpu_idle_ns:
        return ""
    parts = [
        f"{spent_ns / times.wall_ns * 100:.0f} % in {visible(line, _MAX_NAME)}"
        for line, spent_ns in own_lines(profile, times.wall_ns)
    ]
    idle = f"GPU idle {times.gpu_idle_ns / times.wall_ns * 100:.0f} % of the run"
    return f"{idle}: {', '.join(parts)}" if parts else ""

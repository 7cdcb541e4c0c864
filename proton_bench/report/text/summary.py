"""A run in a few lines: recorded against wall time, the hottest paths, what to do next."""

from __future__ import annotations

import shlex

from proton_bench.analysis.accounting.host_time import other_threads, own_lines, run_time_of
from proton_bench.analysis.why.findings import find
from proton_bench.analysis.why.run import WholeRun, trials_ns
from proton_bench.analysis.why.verdict import has_counters
from proton_bench.errors import ProtonError
from proton_bench.model.profile import Profile
from proton_bench.report.text.hottest import hottest_paths, source_line
from proton_bench.report.words.edge import fitting
from proton_bench.report.words.header import device_lines, losses, recorded_line
from proton_bench.report.words.quantity import share_text
from proton_bench.support.text import visible
from proton_bench.support.units import duration_text

__all__ = ["summary_lines"]

_MOST_PATHS, _LEAST_PATHS = 5, 1
_MOST_ROWS = 10_000  # findings of more rows would keep the prompt waiting
_MAX_NAME, _MAX_SOURCE = 80, 40


def summary_lines(
    profile: Profile, file: str = "", width: int | None = None, *, most: int = 9
) -> list[str]:
    """Return the first answer of a profile, as lines that are safe to print.

    All shares are those of the run, where its length is known.

    Args:
        profile: What was recorded.
        file: Its file, for the commands that show more; "" for none.
        width: Characters of a line, None for any number.
        most: Lines at most; with one that names the files it is ten.
    """
    run = recorded_line(profile, shows_start=False)
    head = [*([run] if run else device_lines(profile)), *losses(profile)]
    head += [_idle_line(profile), _trials_line(profile), _threads_line(profile)]
    last = _more_lines(profile, file, width) if file else []
    room = most - len(last) - 1 - _LEAST_PATHS
    head = _cut([*filter(None, head)], room)
    left = most - len(head) - len(last) - 1
    return [*head, *hottest_paths(profile, min(left, _MOST_PATHS), width), *last]


def _cut(lines: list[str], room: int) -> list[str]:
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], f"{len(lines) - room + 1} more remarks: see proton view"]


def _idle_line(profile: Profile) -> str:
    """Return what the main thread did while no device worked, by lines of own code."""
    times = run_time_of(profile)
    if not times.wall_ns or not times.gpu_idle_ns:
        return ""
    parts = []
    for frame, line, spent_ns in own_lines(profile, times.wall_ns):
        source = fitting(source_line(profile, frame), _MAX_SOURCE)
        part = f"{share_text(spent_ns, times.wall_ns, decimals=0)} in {visible(line, _MAX_NAME)}"
        parts.append(f"{part} ({source})" if source else part)
    return f"GPU idle meanwhile: {', '.join(parts)}" if parts else ""


def _trials_line(profile: Profile) -> str:
    """Return how long autotuners tried configurations; the table has the rest of the work."""
    spent_ns, wall_ns = trials_ns(profile), run_time_of(profile).wall_ns
    if not spent_ns:
        return ""
    share = f", {share_text(spent_ns, wall_ns)} of the run" if wall_ns else ""
    return f"autotuners tried configurations for {duration_text(spent_ns)}{share}"


def _threads_line(profile: Profile) -> str:
    """Return what threads besides the main one did, whose time is not part of the run's."""
    recorded_ns, other_ns, row = other_threads(profile)
    if not recorded_ns:
        return ""
    path = " › ".join(visible(name, _MAX_NAME) for name in profile.path(row)[-2:])
    work = f"{duration_text(recorded_ns)} in recorded work, most in {path}"
    other = f"; {duration_text(other_ns)} in other code, which may wait" if other_ns else ""
    return f"other threads: {work}{other}"


def _more_lines(profile: Profile, file: str, width: int | None) -> list[str]:
    """Return the commands that show more; `why` with its first finding, if it has one."""
    shown = shlex.quote(file)
    more = f"more: proton view {shown}, or proton report {shown} for a page"
    try:
        findings = find(WholeRun.of(profile)) if len(profile) <= _MOST_ROWS else ()
    except ProtonError:  # a metric of another tool's file has another type
        findings = ()
    if not findings:
        has_more = has_counters(profile) or len(profile) > _MOST_ROWS
        return [more.replace(",", f", proton why {shown},", 1)] if has_more else [more]
    why = f"proton why {shown}: {visible(findings[0].text)}"
    return [why if width is None else fitting(why, width), more]

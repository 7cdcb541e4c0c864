"""Suffixes of timelines."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CHROME", "PERFETTO", "is_timeline"]

PERFETTO = (".pftrace", ".perfetto-trace", ".pftrace.gz")
CHROME = (".chrome_trace", ".chrome_trace.gz", ".pt.trace.json", ".pt.trace.json.gz")


def is_timeline(file: Path) -> bool:
    """Return whether the suffix of an output is that of timelines that are merged into one."""
    return file.name.endswith(PERFETTO)

"""The sampled source as one versioned JSON document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proton_bench.analysis.kernels.sampling_facts import sampling_facts
from proton_bench.analysis.kernels.source_lines import SampleCounts, SampledFile, SampledSource
from proton_bench.analysis.kernels.stall_reasons import REASON, explain_stall
from proton_bench.model.profile import Profile
from proton_bench.report.text.source import shown_lines
from proton_bench.report.words.source_text import read_source

__all__ = ["source_document"]

_VERSION = (2, 0)


def source_document(
    source: SampledSource, profile: Profile, *, name: str, threshold: float, root: Path
) -> dict[str, Any]:
    """Return what ``proton view --source --json`` prints.

    Args:
        source: Samples by line.
        profile: Their profile.
        name: Name of the profile's file.
        threshold: Lines with a smaller share of all samples, in percent, are left out.
        root: Folder below which source files are read.
    """
    facts = sampling_facts(profile)
    reasons = sorted(metric for metric, count in source.samples.reasons.items() if count)
    return {
        "schema": "proton_bench.source",
        "version": _VERSION,
        "source": name.encode("utf-8", "backslashreplace").decode(),
        "samples": source.samples.total,
        "dropped": facts.dropped if facts else None,
        "period_cycles": facts.period_cycles or None if facts else None,
        "attribution": facts.attribution or None if facts else None,
        "parts": dict(source.samples.parts),
        "files": [
            _file(each, profile, shown_lines(each, source.samples.total, threshold), root=root)
            for each in source.files
        ],
        "kernels_without_lines": [
            {"name": kernel, **_counts(counts)} for kernel, counts in source.unplaced
        ],
        "reasons": {metric.removeprefix(REASON): _meaning(metric) for metric in reasons},
    }


def _file(file: SampledFile, profile: Profile, hot: list[int], *, root: Path) -> dict[str, Any]:
    text = read_source(file.path, profile, max(file.lines), root=root)
    return {
        "path": file.path,
        "note": text.note or None,
        **_counts(file.samples),
        "lines": [
            {
                "line": line,
                "functions": file.functions[line],
                "text": text.line(line),
                **_counts(file.lines[line]),
            }
            for line in hot
        ],
    }


def _counts(counts: SampleCounts) -> dict[str, Any]:
    return {
        "samples": counts.total,
        "parts": dict(counts.parts),
        "stalls": {metric.removeprefix(REASON): count for metric, count in counts.waits()},
    }


def _meaning(metric: str) -> dict[str, str] | None:
    reason = explain_stall(metric)
    if reason is None:
        return None
    return {"meaning": reason.meaning, "remedy": reason.remedy, "source": reason.source}

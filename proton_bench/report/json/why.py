"""Why a run is slow, as one versioned JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from proton_bench.analysis.why.answer import Answer, WhyRow
from proton_bench.model.frame import KIND_NAMES

__all__ = ["why_document"]

_VERSION = (1, 0)


def why_document(answer: Answer, *, source: str, losses: Sequence[str] = ()) -> dict[str, Any]:
    """Return what ``proton why --json`` prints.

    Times are in ns. ``gain_ns`` is an upper bound, ``own_ns`` the part of it that can be added up.
    Each evidence has an ``id`` that is the same in every file.

    Args:
        answer: About the whole run, or one row.
        source: Name of the file.
        losses: What is missing from the profile, a sentence each.
    """
    return {
        "schema": "proton_bench.why",
        "version": _VERSION,
        "source": _encodable(source),
        "summary": answer.sentence,
        "gpu": answer.gpu or None,
        "span_ns": answer.span_ns if answer.is_length_known else None,
        "work_ns": answer.work_ns,
        "idle_ns": answer.idle_ns,
        "findings": [
            {name: value for name, value in asdict(finding).items() if name != "rows"}
            for finding in answer.findings
        ],
        "together_ns": answer.together_ns,
        "rows": [_row(row) for row in answer.rows],
        "smaller_rows": answer.smaller,
        "others": answer.others,
        "ceilings": None
        if answer.ceilings is None
        else {
            "fractions": dict(answer.ceilings.fractions),
            "measured": sorted(answer.ceilings.measured),
        },
        "missing": answer.missing,
        "losses": losses,
        "host": [asdict(each) for each in answer.host],
    }


def _row(row: WhyRow) -> dict[str, Any]:
    return {
        "path": row.path,
        "kind": KIND_NAMES[row.kind],
        "time_ns": row.time_ns,
        "launches": row.launches,
        "verdict": asdict(row.verdict),
    }


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()

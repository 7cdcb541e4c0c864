"""A search as one versioned JSON document."""

from __future__ import annotations

from typing import Any

from proton_bench.gate.bisect import BisectResult
from proton_bench.gate.verdict.result import Outcome
from proton_bench.report.json.gate import encodable, gate_document

__all__ = ["bisect_document"]


def bisect_document(result: BisectResult) -> dict[str, Any]:
    """Return what ``proton bisect --json`` writes; ``proof`` is a document of `proton gate`."""
    document = result.to_document()
    document["proof"] = gate_document(Outcome(result.proof))
    found: dict[str, Any] = encodable(document)
    return found

"""A gate as one versioned JSON document."""

from __future__ import annotations

from typing import Any

from proton_bench.gate.verdict.result import Outcome
from proton_bench.model.frame import escape_surrogates
from proton_bench.report.words.gate_words import headline

__all__ = ["encodable", "gate_document"]


def gate_document(outcome: Outcome) -> dict[str, Any]:
    """Return what ``proton gate --json`` prints: everything of `GateResult`, with explanations.

    ``error`` says why there is no verdict, None if there is one. The worst row is first; 5 % is
    0.05; unknown values are None.
    """
    document = outcome.result.to_document()
    document["headline"] = headline(outcome)
    document["explanation"] = outcome.explanation or None
    document["error"] = outcome.problem or None
    found: dict[str, Any] = encodable(document)
    return found


def encodable(value: Any) -> Any:
    """Return the value with file names that are not UTF-8 escaped."""
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, dict):
        return {
            key: encodable(inner) if isinstance(inner, str | dict | list) else inner
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [encodable(inner) for inner in value]
    return value

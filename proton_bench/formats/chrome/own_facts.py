"""What the keys beside the events of our traces in Chrome's format tell."""

from __future__ import annotations

from typing import Any

from proton_bench.formats.chrome.event import TraceHead

__all__ = [
    "dropped_records",
    "is_session_trace",
    "is_unfinished",
    "process_facts",
    "told_processes",
]

_END = "proton_bench"  # key of what the session told at its end
_PROCESSES = "processes"  # of a merged trace: the facts of each
_INT64 = range(2**63)


def is_session_trace(head: TraceHead) -> bool:
    """Say whether the trace is ours, from the keys before its events."""
    facts = head.facts
    return "baseTimeNanoseconds" in facts and (
        type(facts.get("process_id")) is int or isinstance(facts.get(_PROCESSES), list)
    )


def process_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what the keys beside the events tell of the process, by the names of provenance."""
    found: dict[str, Any] = {"tool": "proton_bench", "format": "chrome_trace"}
    base = facts.get("baseTimeNanoseconds")
    if type(base) is int:
        found["base_time_ns"] = found["start_time_ns"] = base
    for key, ours in (("host_name", "host"), ("process_id", "pid"), ("process_name", "program")):
        if isinstance(facts.get(key), int | str):
            found[ours] = facts[key]
    distributed = facts.get("distributedInfo")
    if isinstance(distributed, dict):
        for key in ("rank", "local_rank", "world_size"):
            if type(distributed.get(key)) is int:
                found[key] = distributed[key]
    told = _told_at_end(facts).get("provenance")
    return {**found, **told} if isinstance(told, dict) else found


def told_processes(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a merged trace tells of each file that it was merged of; no other tells any."""
    told = facts.get(_PROCESSES)
    return [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []


def is_unfinished(facts: dict[str, Any]) -> bool:
    """Tell whether a session did not come to its end, from the keys beside its events."""
    return _END not in facts or _told_at_end(facts).get("is_partial") is True


def dropped_records(facts: dict[str, Any]) -> dict[str, int]:
    """Return what a session lost, by reason."""
    told = _told_at_end(facts).get("dropped")
    counts = told.items() if isinstance(told, dict) else ()
    return {key: count for key, count in counts if type(count) is int and count in _INT64}


def _told_at_end(facts: dict[str, Any]) -> dict[str, Any]:
    told = facts.get(_END)
    return told if isinstance(told, dict) else {}

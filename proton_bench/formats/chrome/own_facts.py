"""What the keys beside the events of our timelines in Chrome's format say."""

from __future__ import annotations

from typing import Any

from proton_bench.formats.chrome.event import TraceHead

__all__ = [
    "dropped_records",
    "is_session_timeline",
    "is_unfinished",
    "process_facts",
]

_END = "proton_bench"  # key of what the session wrote at its end
_INT64 = range(2**63)


def is_session_timeline(head: TraceHead) -> bool:
    """Say whether the timeline is ours, from the keys before its events."""
    facts = head.facts
    base = facts.get("baseTimeNanoseconds")
    return type(base) is int and base in _INT64 and type(facts.get("process_id")) is int


def process_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts about the process from the keys beside the events, under keys of provenance."""
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
    provenance = _end_facts(facts).get("provenance")
    return {**found, **provenance} if isinstance(provenance, dict) else found


def is_unfinished(facts: dict[str, Any]) -> bool:
    """Say whether a session did not reach its end, from the keys beside its events."""
    return _END not in facts or _end_facts(facts).get("is_partial") is True


def dropped_records(facts: dict[str, Any]) -> dict[str, int]:
    """Return what a session lost, by reason."""
    dropped = _end_facts(facts).get("dropped")
    counts = dropped.items() if isinstance(dropped, dict) else ()
    return {key: count for key, count in counts if type(count) is int and count in _INT64}


def _end_facts(facts: dict[str, Any]) -> dict[str, Any]:
    found = facts.get(_END)
    return found if isinstance(found, dict) else {}

"""Which tool wrote a timeline in Chrome's format, and its call paths."""

from __future__ import annotations

from dataclasses import replace
from typing import IO

from proton_bench.formats.base import corrupt
from proton_bench.formats.chrome.event import TraceEvent, TraceHead, read_trace
from proton_bench.formats.chrome.kineto_events import KinetoReader, is_kineto
from proton_bench.formats.chrome.own_facts import is_session_timeline
from proton_bench.formats.chrome.repair import Repaired
from proton_bench.formats.chrome.slices import read_session_profile
from proton_bench.formats.chrome.split import InvalidJsonError, Readable
from proton_bench.formats.chrome.stream import unpacked
from proton_bench.formats.chrome.upstream_events import ProtonTraceReader, is_proton_trace
from proton_bench.model.origin import is_partial_name
from proton_bench.model.profile import Profile

__all__ = ["empty_profile", "read_timeline"]


_MOST_NAMED = 5
_REPAIRED = "text or comma that is not JSON: read as what it stands for"


def empty_profile(source: str) -> Profile:
    """Return what upstream's file without any content holds."""
    return ProtonTraceReader(source).profile(TraceHead())


def read_timeline(stream: IO[bytes], source: str) -> Profile:
    """Return the profile in a stream; arguments and errors as for `Format.decode`."""
    try:
        return _read(stream, unpacked(stream, source), source)
    except InvalidJsonError as error:
        repaired = Repaired(unpacked(stream, source))
        try:
            found = _read(stream, repaired, source)
        except InvalidJsonError:
            raise error from None
    return replace(found, dropped={**found.dropped, _REPAIRED: repaired.repairs})


def _read(stream: IO[bytes], content: Readable, source: str) -> Profile:
    is_partial = is_partial_name(source)
    head = TraceHead()
    reader: KinetoReader | ProtonTraceReader | None = None
    for events in read_trace(content, source, head, may_be_cut=is_partial):
        if reader is None and is_session_timeline(head):
            break
        if reader is None:
            reader = _reader_of(head, events, source)
        reader.add(events)
    if reader is None and is_session_timeline(head):
        return read_session_profile(stream, source)
    chosen = reader if reader is not None else _reader_of(head, [], source)
    return chosen.profile(head)


def _reader_of(
    head: TraceHead, events: list[TraceEvent], source: str
) -> KinetoReader | ProtonTraceReader:
    if is_kineto(head, events):
        return KinetoReader(source)
    if is_proton_trace(head, events):
        return ProtonTraceReader(source)
    categories = dict.fromkeys(repr(event.cat[:40]) for event in events if event.ph == "X")
    named = ", ".join([*categories][:_MOST_NAMED])
    held = f"events of the categories {named}" if categories else "no events with a duration"
    raise corrupt(
        source,
        f"the timeline holds {held}, and is of no known tool (proton_bench, triton.profiler, "
        "torch.profiler)",
        "open it at https://ui.perfetto.dev",
    )

"""The oracle of timelines works on traces that this package did not write."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from browser.trace_engine import TraceEngine, TraceEngineError

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
TRACKS = "select distinct track.name from slice join track on track.id = slice.track_id"
pytestmark = pytest.mark.browser


def chrome_trace(*slices: tuple[str, int, int]) -> bytes:
    """Return a trace of slices on one thread: name, start and duration in microseconds."""
    events = [
        {"ph": "X", "pid": 1, "tid": 2, "name": name, "ts": start, "dur": duration}
        for name, start, duration in slices
    ]
    return json.dumps({"traceEvents": events}).encode()


def perfetto_trace(names: list[str]) -> bytes:
    """Return a trace of slices on one track, one after the other, 10 ns each."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

    builder = TraceProtoBuilder()
    descriptor = builder.add_packet().track_descriptor
    descriptor.uuid, descriptor.name = 7, "stream 7"

    def add(kind: int, at: int, name: str = "") -> None:
        packet = builder.add_packet()
        packet.timestamp, packet.trusted_packet_sequence_id = at, 1
        packet.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED if at == 0 else 0
        packet.track_event.type, packet.track_event.track_uuid = kind, 7
        if name:  # the end of a slice has none
            packet.track_event.name = name

    for number, name in enumerate(names):
        add(TrackEvent.TYPE_SLICE_BEGIN, 10 * number, name)
        add(TrackEvent.TYPE_SLICE_END, 10 * number + 10)
    return builder.serialize()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_slices_of_both_formats_are_read(trace_engine: TraceEngine, pack: Any) -> None:
    slices = "select name, dur from slice order by ts"

    trace_engine.load(pack(chrome_trace(("a", 1, 5), ("b", 6, 2))))
    assert trace_engine.query(slices) == [("a", 5000), ("b", 2000)]
    assert trace_engine.complaints() == []

    trace_engine.load(pack(perfetto_trace(["c", "d", "e"])))
    assert trace_engine.query(slices) == [("c", 10), ("d", 10), ("e", 10)]
    assert trace_engine.query(TRACKS) == [("stream 7",)]
    assert trace_engine.complaints() == []


@pytest.mark.parametrize("name", ["ties.pftrace", "ties.chrome_trace"])
def test_slices_of_ours_with_equal_times_nest_and_lose_nothing(
    name: str, trace_engine: TraceEngine
) -> None:
    trace_engine.load((GOLDEN / name).read_bytes())

    assert trace_engine.complaints() == []
    start = trace_engine.value("select min(ts) from slice where category = 'scope'")
    rows = trace_engine.query("select name, ts, dur, depth from slice where category = 'scope'")
    assert sorted((name, ts - start, dur, depth) for name, ts, dur, depth in rows) == [
        ("inner", 0, 300, 1),
        ("innermost", 0, 300, 2),
        ("nothing", 0, 0, 3),
        ("nothing", 300, 0, 1),
        ("outer", 0, 300, 0),
        ("outer", 300, 100, 0),
    ]
    kernels = "select ts, dur from slice where category = 'kernel' order by ts, dur"
    assert [(ts - start, dur) for ts, dur in trace_engine.query(kernels)] == [
        (1000, 0),
        (1000, 100),
        (1100, 0),
    ]


def test_more_rows_than_one_answer_holds(trace_engine: TraceEngine) -> None:
    trace_engine.load(perfetto_trace(["kernel"] * 20_000))

    assert len(trace_engine.query("select ts, name from slice")) == 20_000


def test_slices_that_overlap_are_complained_of(trace_engine: TraceEngine) -> None:
    trace_engine.load(chrome_trace(("a", 1, 5), ("b", 3, 50)))

    assert [count for _name, _index, count in trace_engine.complaints()] == [1]


def test_rubbish_and_wrong_questions_are_refused(trace_engine: TraceEngine) -> None:
    with pytest.raises(TraceEngineError):
        trace_engine.load(b"rubbish")

    trace_engine.load(chrome_trace(("a", 1, 5)))
    with pytest.raises(TraceEngineError):
        trace_engine.query("select colour from slice")
    assert trace_engine.value("select name from slice") == "a"

"""Timelines that Perfetto's own package writes, and ours read by its message types."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.perfetto import SessionTrace, packed

from proton_bench.formats.registry import decode_profile

protos: Any = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

SEQUENCE = 5
MAIN, WORKER, SIZES = 11, 12, 13


def trace() -> Any:
    """Return a trace with interned names, an incremental clock, a counter and a flow."""
    found = protos.Trace()
    first = found.packet.add(trusted_packet_sequence_id=SEQUENCE)
    first.sequence_flags = 1
    first.trace_packet_defaults.timestamp_clock_id = 64
    first.trace_packet_defaults.track_event_defaults.track_uuid = MAIN
    first.clock_snapshot.clocks.add(clock_id=6, timestamp=1_000_000)
    first.clock_snapshot.clocks.add(
        clock_id=64, timestamp=50, is_incremental=True, unit_multiplier_ns=1000
    )
    process = found.packet.add(trusted_packet_sequence_id=SEQUENCE).track_descriptor
    process.uuid = 10
    process.process.pid, process.process.process_name = 77, "server"
    for uuid, name in ((MAIN, "main"), (WORKER, "worker")):
        track = found.packet.add(trusted_packet_sequence_id=SEQUENCE).track_descriptor
        track.uuid, track.parent_uuid = uuid, 10
        track.thread.pid, track.thread.tid, track.thread.thread_name = 77, uuid, name
    counter = found.packet.add(trusted_packet_sequence_id=SEQUENCE).track_descriptor
    counter.uuid, counter.name = SIZES, "size"
    counter.counter.unit_name = "bytes"
    interned = found.packet.add(trusted_packet_sequence_id=SEQUENCE)
    interned.sequence_flags = 2
    interned.interned_data.event_names.add(iid=1, name="request")
    interned.interned_data.event_names.add(iid=2, name="query")
    return found


def event(found: Any, step: int, kind: int, **fields: Any) -> Any:
    packet = found.packet.add(trusted_packet_sequence_id=SEQUENCE, timestamp=step, sequence_flags=2)
    packet.track_event.type = kind
    for name, value in fields.items():
        setattr(packet.track_event, name, value)
    return packet.track_event


def test_what_the_package_writes_becomes_call_paths() -> None:
    found = trace()
    event(found, 1, 1, name_iid=1)
    event(found, 2, 1, name_iid=2).flow_ids.append(9)
    event(found, 1, 4, track_uuid=SIZES, counter_value=5)
    event(found, 3, 2)
    event(found, 1, 1, track_uuid=WORKER, name="task")
    event(found, 0, 3, name="mark")
    event(found, 4, 2, track_uuid=WORKER)
    event(found, 5, 2)

    profile = decode_profile(found.SerializeToString(), "x.pftrace")

    walls = profile.column("wall (ns)").to_list()
    assert {profile.path(row): walls[row] for row in range(1, len(profile))} == {
        ("request",): 16_000,
        ("request", "query"): 4_000,
        ("task",): 4_000,
    }
    assert profile.dropped == {}
    assert profile.provenance["tool"] == "perfetto"


def test_old_forms_of_events_are_counted() -> None:
    found = trace()
    event(found, 1, 0).legacy_event.phase = ord("X")

    profile = decode_profile(found.SerializeToString(), "x.pftrace")

    assert profile.dropped == {"event in the form of Chrome's old tracing: left out": 1}


def test_the_double_of_our_writer_speaks_the_format() -> None:
    written = SessionTrace(1, world_size=2, process_id=7)
    thread = written.thread(3)
    written.slice(thread, 5, 9, ["step", "f"], "scope", flops="2")

    found = protos.Trace.FromString(packed(written.packets))

    names = [
        p.track_descriptor.thread.thread_name
        for p in found.packet
        if p.HasField("track_descriptor")
    ]
    assert names == ["", "thread 3"]
    begins = [p.track_event for p in found.packet if p.track_event.type == 1]
    assert [each.track_uuid for each in begins] == [thread]
    texts = [
        entry.str for p in found.packet for entry in p.interned_data.debug_annotation_string_values
    ]
    assert texts == [b'["ROOT", "step", "f"]']

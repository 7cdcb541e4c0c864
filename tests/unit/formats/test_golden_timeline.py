"""The golden timeline as Perfetto's own message classes and a JSON parser read it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
STATE_CLEARED = 1
WRAP = 2**64
START_NS = 1_790_000_000_000_001_000


@pytest.fixture(scope="module")
def packets() -> Any:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace()
    trace.ParseFromString(gzip.decompress((GOLDEN / "timeline.pftrace").read_bytes()))
    return trace.packet


def test_all_packets_are_of_one_sequence_whose_state_begins_it(packets: Any) -> None:
    assert len({packet.trusted_packet_sequence_id for packet in packets}) == 1
    assert [packet.sequence_flags & STATE_CLEARED for packet in packets] == [1] + [0] * (
        len(packets) - 1
    )
    clocks = {clock.clock_id: clock for clock in packets[0].clock_snapshot.clocks}
    assert {clock.timestamp for clock in clocks.values()} == {START_NS}
    assert clocks[packets[0].trace_packet_defaults.timestamp_clock_id].is_incremental


def test_slices_are_balanced_and_in_the_order_of_time_on_each_track(packets: Any) -> None:
    now, default = START_NS, 0
    tracks: dict[int, list[tuple[int, int]]] = {}
    for packet in packets:
        if packet.HasField("trace_packet_defaults"):
            default = packet.trace_packet_defaults.track_event_defaults.track_uuid
        if packet.HasField("track_event"):
            now = (now + packet.timestamp) % WRAP
            event = packet.track_event
            if event.type in (BEGIN, END):
                tracks.setdefault(event.track_uuid or default, []).append((now, event.type))
    assert tracks
    for events in tracks.values():
        assert [at for at, _ in events] == sorted(at for at, _ in events)
        kinds = Counter(kind for _, kind in events)
        assert kinds[BEGIN] == kinds[END]


def test_tracks_form_a_tree_below_the_process(packets: Any) -> None:
    found = {
        packet.track_descriptor.uuid: packet.track_descriptor
        for packet in packets
        if packet.HasField("track_descriptor")
    }
    roots = [track for track in found.values() if not track.parent_uuid]
    assert [root.process.process_name for root in roots] == ["rank 3 host gpu7: train.py"]
    names = {track.name or track.thread.thread_name for track in found.values()}
    assert names >= {
        "MainThread",
        "GPU 0",
        "Stream 7",
        "Stream 7 (line 1)",
        "Graph: Stream 9",
        "SM 17 warp 1",
        "SM clock (MHz)",
    }
    assert "wörker \\xff" in names
    assert all(track.parent_uuid in found for track in found.values() if track not in roots)


def test_numbers_of_strings_are_given_before_they_are_used(packets: Any) -> None:
    known: dict[str, set[int]] = {"name": set(), "key": set(), "text": set(), "category": set()}
    for packet in packets:
        interned = packet.interned_data
        known["name"] |= {each.iid for each in interned.event_names}
        known["category"] |= {each.iid for each in interned.event_categories}
        known["key"] |= {each.iid for each in interned.debug_annotation_names}
        known["text"] |= {each.iid for each in interned.debug_annotation_string_values}
        event = packet.track_event
        assert not event.name_iid or event.name_iid in known["name"]
        assert set(event.category_iids) <= known["category"]
        for annotation in event.debug_annotations:
            assert annotation.name or annotation.name_iid in known["key"]
            iid = annotation.string_value_iid
            assert not iid or iid in known["text"]


def test_an_arrow_joins_a_launch_and_its_kernel(packets: Any) -> None:
    ends = Counter(flow for packet in packets for flow in packet.track_event.flow_ids)
    # The kernel, the first node of the graph on each of two streams.
    assert sorted(ends.values(), reverse=True)[:4] == [2, 2, 2, 1]


def test_the_end_reports_losses(packets: Any) -> None:
    last = packets[-1].track_event
    assert last.name == "proton_bench: end of session"
    named = {each.name: each for each in last.debug_annotations}
    assert [(each.name, each.uint_value) for each in named["dropped"].dict_entries] == [
        ("buffer was full", 2)
    ]
    assert named["clock_drift_ns"].int_value == 40


def test_the_chrome_file_has_the_same_kernels() -> None:
    file = json.loads((GOLDEN / "timeline.chrome_trace").read_bytes())
    assert file["baseTimeNanoseconds"] == START_NS
    kernels = [event for event in file["traceEvents"] if event.get("cat") == "kernel"]
    assert sorted(event["name"] for event in kernels) == ["add", "add", "matmul", "matmul"]
    assert {event["args"]["stream"] for event in kernels} == {7, 9}
    assert file["distributedInfo"]["rank"] == 3

"""Timelines in Perfetto's format, read as call paths."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from fakes.perfetto import BEGIN, END, START_NS, SessionTrace, fixed64, foreign, packed
from hypothesis import given
from hypothesis import strategies as st
from reference.profile_view import values_by_path
from sweeps import some

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.formats.perfetto.file import PerfettoFile
from proton_bench.formats.protobuf import Message
from proton_bench.formats.registry import decode_profile, read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

NAME = "x.pftrace"


def recorded(**facts: Any) -> SessionTrace:
    """Return a scope with an operator in an operator, a launch and its kernel, and a collective."""
    trace = SessionTrace(**facts)
    thread, stream = trace.thread(), trace.stream()
    trace.event(
        BEGIN, thread, 10, name="step", category="metric", path=["step"], values={"flops": "12.5"}
    )
    trace.slice(thread, 20, 30, ["step", "k"], "launch", launch=1)
    trace.event(BEGIN, thread, 40, name="aten::mm", category="op", path=["step", "aten::mm"])
    trace.slice(thread, 50, 60, ["step", "aten::mm", "aten::fill"], "op")
    trace.event(END, thread, 70)
    trace.event(END, thread, 100)
    trace.slice(stream, 110, 150, ["step", "k"], "kernel", launch=1)
    trace.slice(stream, 200, 230, ["step", "ncclDevKernel_AllReduce"], "kernel", launch=2)
    return trace


def read(content: bytes) -> Profile:
    profile = decode_profile(content, NAME)
    profile.self_check()
    return profile


def test_times_and_counts_stand_on_the_paths_of_events() -> None:
    profile = read(recorded().finish())

    assert values_by_path(profile, "time (ns)") == {
        "step/aten::mm": 20,
        "step/aten::mm/aten::fill": 10,
        "step/k": 40,
        "step/ncclDevKernel_AllReduce": 30,
    }
    assert set(values_by_path(profile, "count").values()) == {1}
    assert values_by_path(profile, "wall (ns)") == {"step": 90}
    assert values_by_path(profile, "flops") == {"step": 12.5}
    assert values_by_path(profile, "launch_latency_sum (ns)") == {"step/k": 90}
    assert not profile.partial
    assert profile.dropped == {}


def test_devices_and_their_use_are_known() -> None:
    profile = read(recorded().finish())

    devices = {profile.path(row)[-1]: profile.device(row) for row in range(2, len(profile))}
    assert (devices["k"].kind, devices["k"].index) == ("GPU", 0)  # type: ignore[union-attr]
    assert devices["aten::mm"].kind == "CPU"  # type: ignore[union-attr]
    (whole,) = (use for use in profile.device_use if use.scope is None)
    assert (whole.busy_ns, whole.waiting_ns, whole.idle_ns) == (70, 30, 140)


def test_steps_back_in_time_are_understood() -> None:
    trace = SessionTrace()
    thread = trace.thread()
    trace.slice(thread, 500, 900, ["late"], "scope")
    trace.slice(thread, 100, 250, ["early"], "scope")

    assert values_by_path(read(trace.finish()), "wall (ns)") == {"late": 400, "early": 150}


def test_facts_of_the_process_are_kept() -> None:
    facts = read(recorded(rank=2, world_size=4, host="h1", process_id=9).finish()).provenance

    assert (facts["rank"], facts["world_size"], facts["host"], facts["pid"]) == (2, 4, "h1", 9)
    assert facts["start_time_ns"] == START_NS


def test_what_the_session_reported_at_its_end_is_kept() -> None:
    annotated = {"provenance": '{"command": ["x.py"], "host": "h2"}', "clock_drift_ns": 5}
    profile = read(recorded(rank=1).finish(facts=annotated))

    facts = profile.provenance.to_plain()
    assert (facts["command"], facts["host"], facts["rank"]) == (["x.py"], "h2", 1)
    assert facts["clock_drift_ns"] == 5


def test_rows_of_graphs_and_scopes_inside_kernels_are_not_rows() -> None:
    trace = recorded()
    stream = trace.track("Graph: Stream 7", parent=trace.stream())
    for category in ("graph_scope", "program", "kernel_scope"):
        trace.slice(stream, 300, 400, ["step", "inner"], category)

    assert values_by_path(read(trace.finish()), "time (ns)") == values_by_path(
        read(recorded().finish()), "time (ns)"
    )


def test_nodes_of_a_graph_are_found_by_the_number_of_its_launch() -> None:
    trace = SessionTrace()
    thread, stream = trace.thread(), trace.stream()
    trace.slice(thread, 10, 20, ["g"], "launch", launch=3, correlation=3)
    trace.slice(stream, 50, 60, ["g", "a"], "kernel", launch=3, correlation=3)
    trace.slice(stream, 70, 80, ["g", "b"], "kernel", correlation=3)

    assert values_by_path(read(trace.finish()), "launch_latency_sum (ns)") == {"g/a": 40}


def test_a_session_without_its_end_is_partial() -> None:
    assert read(recorded().unfinished()).partial
    assert read(recorded().finish(is_partial=True)).partial


def test_every_cut_is_read_as_far_as_it_goes() -> None:
    content = recorded().finish()
    whole = read(content)
    kernels = []

    for cut in some(range(len(content) // 3, len(content)), 200):
        profile = read(content[:cut])
        assert profile.partial
        kernels.append(int(profile.inclusive("count")[0]) if "count" in profile.columns else 0)

    assert kernels == sorted(kernels)
    assert kernels[-1] <= whole.inclusive("count")[0]
    assert kernels[-1] > 0


def test_slices_of_other_tools_nest_by_time() -> None:
    content = foreign(
        [
            (BEGIN, 100, "outer", "main"),
            (BEGIN, 110, "inner", "main"),
            (BEGIN, 115, "alone", "worker"),
            (END, 120, "", "main"),
            (BEGIN, 130, "inner", "main"),
            (END, 150, "", "main"),
            (END, 200, "", "main"),
            (END, 215, "", "worker"),
        ]
    )

    profile = read(content)

    assert values_by_path(profile, "wall (ns)") == {"outer": 100, "outer/inner": 30, "alone": 100}
    assert all(profile.kind(row) is FrameKind.SCOPE for row in range(1, len(profile)))
    assert not profile.partial


def test_what_does_not_pair_is_counted() -> None:
    profile = read(foreign([(END, 5, "", "main"), (BEGIN, 10, "a", "main")]))

    assert profile.dropped == {
        "end of a slice that did not begin: left out": 1,
        "slice without an end: left out": 1,
    }


def test_packets_that_count_on_lost_ones_are_left_out() -> None:
    event = Message().number(9, BEGIN).number(11, 1).number(10, 3)
    content = packed([Message().number(8, 5).number(10, 1).number(13, 2).message(11, event)])

    assert read(content).dropped == {
        "event that counts on packets which are not in the file: left out": 1
    }


def test_compressed_packets_are_opened() -> None:
    inner = foreign([(BEGIN, 1, "a", "t"), (END, 9, "", "t")])
    content = packed([Message().number(10, 2).packed(50, zlib.compress(inner))])

    assert values_by_path(read(content), "wall (ns)") == {"a": 8}


def test_doubles_negative_and_nested_annotations_are_read() -> None:
    trace = SessionTrace()
    thread = trace.thread()
    event = Message().number(9, BEGIN).number(11, thread).text(23, "a")
    stack = Message().text(10, "call_stack").text(6, '["ROOT","a"]')
    event.message(4, stack)
    ratio = Message().text(10, "ratio")
    event.packed(4, bytes(ratio) + fixed64(5, int.from_bytes(b"\0\0\0\0\0\0\xf8\x3f", "little")))
    event.message(4, Message().text(10, "debt").number(4, -5))
    event.message(4, Message().text(10, "deep").message(11, Message().text(10, "x").number(3, 1)))
    trace.packets.append(Message().number(8, 5).number(10, trace.sequence).message(11, event))
    trace.event(END, thread, 50)

    profile = read(trace.finish())

    assert values_by_path(profile, "ratio") == {"a": 1.5}
    assert values_by_path(profile, "debt") == {"a": -5}
    assert "deep" not in profile.columns


def test_values_may_have_names_of_event_fields() -> None:
    trace = SessionTrace()
    names = {"bytes": "7", "stream": "2", "open": "1", "correlation": "3", "call_stack": "4"}
    trace.slice(trace.thread(), 0, 9, ["a"], "metric", **names)
    trace.slice(trace.stream(), 20, 29, ["a", "k"], "kernel", flops="2.500000", bytes="100")
    trace.slice(trace.stream(), 30, 39, ["a", "<memcpy>"], "copy", bytes="4096")

    profile = read(trace.finish())

    assert values_by_path(profile, "bytes") == {"a": 7, "a/k": 100, "a/<memcpy>": 4096}
    assert values_by_path(profile, "flops") == {"a/k": 2.5}
    for name in ("stream", "open", "correlation"):
        assert values_by_path(profile, name) == {"a": int(names[name])}
    assert values_by_path(profile, "wall (ns)") == {"a": 9}


def test_a_file_that_was_packed_once_more_is_read() -> None:
    once = recorded().finish()
    twice = gzip.compress(once, mtime=0)

    assert PerfettoFile().sniff(twice)
    assert values_by_path(read(twice), "count") == values_by_path(read(once), "count")
    assert decode_profile(twice[:-30], "x.pftrace").partial


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    file = tmp_path / "trace.bin"
    file.write_bytes(recorded().finish())

    assert read_profile(file).inclusive("count")[0] == 4


@pytest.mark.parametrize(
    "content", [b"\n[\n    {}]", b"\n" + b" " * 200, b'\n{"a": 1}', b"", b"\n"]
)
def test_text_is_not_a_trace(content: bytes) -> None:
    assert not PerfettoFile().sniff(content)


def test_no_profile_is_written_as_a_timeline() -> None:
    with pytest.raises(UsageError, match="cannot become a timeline"):
        PerfettoFile().encode(ProfileBuilder().build())


@pytest.mark.parametrize(
    "content",
    [
        b"\x0a\x05hello",
        b"\x12\x05hello",
        b"\x0a\xff\xff\xff\xff\x7f",
        b"\x0a" + b"\xff" * 12,
        b"\x1f\x8b" + b"\0" * 30,
        packed([Message().number(10, 1).packed(50, b"no zlib")]),
        packed([Message().packed(50, zlib.compress(b"\0" * (1 << 26)))]),
        packed([Message().number(8, 1).packed(11, b"\x08")]),
        packed([Message().number(8, 1).packed(11, b"\x22\x05ab")]),
    ],
)
def test_hostile_files_are_one_clear_error(content: bytes) -> None:
    with pytest.raises(ProfileFormatError, match=r"^x\.pftrace: .*; "):
        read(content)


def test_damaged_bytes_do_no_harm() -> None:
    generator = random.Random(3)
    plain = packed(recorded().packets)
    outcomes = set()
    for _ in range(400):
        content = bytearray(plain)
        for _ in range(generator.randint(1, 4)):
            content[generator.randrange(len(content))] = generator.randrange(256)
        is_profile, problem = outcome(bytes(content))
        assert is_profile or problem.startswith(f"{NAME}: ")
        outcomes.add(is_profile)

    assert outcomes == {True, False}


@given(st.binary(max_size=200))
def test_any_bytes_do_no_harm(content: bytes) -> None:
    fields = (11, 12, 60, 6)
    packets = [Message().number(8, 3).number(10, 1).packed(field, content) for field in fields]

    outcomes = [outcome(file) for file in (b"\x0a" + content, *(packed([p]) for p in packets))]

    assert all(is_profile or problem.startswith(f"{NAME}: ") for is_profile, problem in outcomes)


def outcome(content: bytes) -> tuple[bool, str]:
    """Return whether a sound profile was read, or the reader's message."""
    try:
        profile = decode_profile(content, NAME)
    except ProfileFormatError as error:
        return False, str(error)
    profile.self_check()
    return True, ""


def of_sequences(events: Iterable[tuple[int, int, int, str]]) -> bytes:
    """Return a trace with one track: sequence, kind, time and name of each event."""
    packets = [Message().number(10, 1).message(60, Message().number(1, 9).text(2, "request"))]
    for sequence, kind, at_ns, name in events:
        event = Message().number(9, kind).number(11, 9).text(23, name)
        packets.append(Message().number(8, at_ns).number(10, sequence).message(11, event))
    return packed(packets)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_slices_that_one_thread_begins_and_another_ends_are_paired_by_time(
    order: tuple[int, ...],
) -> None:
    events = [(7, BEGIN, 100, "get"), (8, END, 350, ""), (8, BEGIN, 400, "put"), (7, END, 900, "")]

    profile = read(of_sequences(events[number] for number in order))

    lengths = {profile.name(row): profile.column("wall (ns)").get(row) for row in (1, 2)}
    assert lengths == {"get": 250, "put": 500}
    assert profile.dropped == {}

"""Packets whose bytes were read before are read as if they were new."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path
from typing import Any

import pytest
from fakes.perfetto import BEGIN, END, SessionTrace, fixed64

from proton_bench.formats.path_tree import Reading
from proton_bench.formats.perfetto.event import TrackEvent
from proton_bench.formats.perfetto.stream import PacketStream
from proton_bench.formats.perfetto.trace import PerfettoTrace, PlanBook, Slice
from proton_bench.formats.protobuf import Message, varint

GOLDEN = Path(__file__).parents[3] / "data" / "golden" / "timeline.pftrace"


class Kept:
    """Keeps what is read."""

    def __init__(self) -> None:
        self.slices: list[Slice] = []

    def add_slice(self, found: Slice) -> None:
        self.slices.append(found)

    def add_instant(self, event: TrackEvent, sequence: int, at_ns: int) -> None:
        """Take nothing."""


def slices_of(content: bytes) -> list[Slice]:
    kept = Kept()
    trace = PerfettoTrace(kept, Reading("x"), ordered={1})
    trace.add(PacketStream(io.BytesIO(content), "x"))
    trace.finish()
    return kept.slices


def plainly(content: bytes, monkeypatch: pytest.MonkeyPatch) -> list[Slice]:
    """Return the slices, with each packet read on its own."""
    with monkeypatch.context() as context:
        context.setattr(PlanBook, "find", lambda self, packet: None)
        return slices_of(content)


def packets(*contents: bytes) -> bytes:
    return b"".join(b"\x0a" + varint(len(content)) + content for content in contents)


def laid_out(event: bytes, time: int = 5) -> bytes:
    """Return a packet as our encoder lays it out: sequence, event, time."""
    return b"\x50\x01\x5a" + varint(len(event)) + event + b"\x40" + varint(time)


def begin(name: str, more: bytes = b"") -> bytes:
    return bytes(Message().number(9, BEGIN).text(22, "scope").text(23, name)) + more


ENDS = bytes(Message().number(9, END))


def test_the_golden_timeline_is_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    content = GOLDEN.read_bytes()

    assert slices_of(content) == plainly(content, monkeypatch)


@pytest.mark.parametrize("seed", range(5))
def test_any_timeline_is_read_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    trace = SessionTrace()
    tracks = [trace.thread(11), trace.stream()]
    at_ns = 0
    for launch in range(1, 400):
        step_ns = chance.choice((1, 100, 20_000, 3_000_000, 2**40))
        trace.slice(
            chance.choice(tracks),
            at_ns,
            at_ns + step_ns,
            [f"step {chance.randrange(3)}"],
            "scope",
            launch=chance.choice((0, launch)),
            **({"flops": chance.choice("12")} if chance.random() < 0.3 else {}),
        )
        at_ns += step_ns + chance.randrange(200)
    content = trace.finish()

    found = slices_of(content)

    assert len(found) == 399
    assert found == plainly(content, monkeypatch)


def test_each_slice_has_its_own_arrow_and_time() -> None:
    flows = [2**63 + 5, 7, 2**64 - 1, 0x02F9_02F9_02F9_02F9]
    pairs = [(laid_out(begin("k", fixed64(47, flow)), 300), laid_out(ENDS, 40)) for flow in flows]

    found = slices_of(packets(*(packet for pair in pairs for packet in pair)))

    assert [each.flow for each in found] == flows
    assert {(each.start_ns, each.end_ns) for each in found} == {(300, 40)}


def test_the_first_of_several_arrows_counts() -> None:
    twice = [fixed64(47, first) + fixed64(47, 9) for first in (3, 4, 5)]

    found = slices_of(
        packets(*(each for more in twice for each in (laid_out(begin("k", more)), laid_out(ENDS))))
    )

    assert [each.flow for each in found] == [3, 4, 5]


@pytest.mark.parametrize("text", ["\x02" * 7, "@\x05", "aaaaaaa@", "9999@1"])
def test_texts_that_look_like_times_and_arrows_are_texts(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    annotation = bytes(Message().message(4, Message().text(10, "k").text(6, text)))
    tricky = bytes(Message().packed(4, b"\x52\x01k\x32\x0a\xf9\x02" + text.encode()[:8].ljust(8)))
    parts = [begin("a", annotation), ENDS, begin("b", tricky), ENDS] * 3
    times = [1, 64, 5 << 7 | 64, 2**14, 2**63]
    content = packets(*(laid_out(part, times[n % 5]) for n, part in enumerate(parts)))

    found = slices_of(content)

    assert len(found) == 6
    assert found == plainly(content, monkeypatch)


def test_a_name_that_is_given_anew_counts_from_then_on() -> None:
    def named(text: str) -> bytes:
        entry = Message().number(1, 1).text(2, text)
        return b"\x50\x01" + bytes(Message().message(12, Message().message(2, entry)))

    event = bytes(Message().number(9, BEGIN).text(22, "scope").number(10, 1))
    pair = (laid_out(event), laid_out(ENDS))
    cleared = b"\x50\x01" + bytes(Message().number(13, 1)) + named("third")[2:]

    found = slices_of(
        packets(*pair, named("first"), *pair, *pair, named("second"), *pair, cleared, *pair)
    )

    assert [each.name for each in found] == ["", "first", "first", "second", "third"]


def test_events_stand_on_the_track_that_their_sequence_stands_on() -> None:
    def default(track: int) -> bytes:
        event = Message().number(11, track)
        return b"\x50\x01" + bytes(Message().message(59, Message().message(11, event)))

    own = begin("k", bytes(Message().number(11, 9)))
    ends_own = ENDS + bytes(Message().number(11, 9))
    pair = (laid_out(begin("k")), laid_out(ENDS))

    found = slices_of(
        packets(default(3), *pair, default(4), *pair, laid_out(own), laid_out(ends_own), *pair)
    )

    assert [each.track for each in found] == [3, 4, 9, 4]


def test_the_book_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proton_bench.formats.perfetto.trace._MOST_PLANS", 4)
    pairs: list[Any] = [(laid_out(begin(str(number))), laid_out(ENDS)) for number in range(50)]

    found = slices_of(packets(*(each for pair in pairs for each in pair)))

    assert [each.name for each in found] == [str(number) for number in range(50)]


def test_members_and_plain_bytes_are_read_the_same() -> None:
    content = packets(*(laid_out(part) for part in (begin("k"), ENDS) * 40))

    assert len(slices_of(content)) == 40
    assert slices_of(gzip.compress(content)) == slices_of(content)

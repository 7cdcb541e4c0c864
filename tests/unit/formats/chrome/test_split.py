"""A trace is cut into documents that say the same, wherever blocks end."""

from __future__ import annotations

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.chrome import split as trace_split
from proton_bench.formats.chrome.split import Batch, Frame, split_trace

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text('"\\{}[],:a\n', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\{}[a', max_size=4), inner)
    ),
    max_leaves=8,
)
EVENTS = st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=3), max_size=6)


def split(content: bytes) -> tuple[list[Any], list[Any]]:
    """Return the events and the whole frames of a trace."""
    events: list[Any] = []
    frames: list[Any] = []
    for piece in split_trace(io.BytesIO(content), "hostile"):
        if isinstance(piece, Batch):
            events += json.loads(piece.content)
        elif piece.is_whole:
            frames.append(json.loads(piece.content))
    return events, frames


@pytest.fixture(params=[1, 7, 64, 1 << 20])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Read blocks of this many bytes."""
    monkeypatch.setattr(trace_split, "BLOCK", request.param)
    return int(request.param)


def test_events_and_what_stands_around_them_come_apart(block: int) -> None:
    before = rb'{"a": {"traceEvents": [1]}, "b\"traceEvents": [2], '

    events, frames = split(before + rb'"traceEvents": [{"c": "]}\\"}, {}], "d": 3}')

    assert events == [{"c": "]}\\"}, {}]
    assert frames == [{"a": {"traceEvents": [1]}, 'b"traceEvents': [2], "traceEvents": [], "d": 3}]
    assert block


def test_documents_may_follow_one_another(block: int) -> None:
    text = b'{"traceEvents":[{"a":1}]}\n{"traceEvents":[]}\n\n[{"b":2},{"c":[3]}]\n'

    events, frames = split(text)

    assert events == [{"a": 1}, {"b": 2}, {"c": [3]}]
    assert frames == [{"traceEvents": []}, {"traceEvents": []}, []]
    assert block


def test_keys_before_the_events_are_passed_on_before_them() -> None:
    text = b'{"schemaVersion":1,"traceEvents":[{}],"z":2}'

    first, second, third = split_trace(io.BytesIO(text), "x")

    assert first == Frame(b'{"schemaVersion":1,"traceEvents":[', is_whole=False)
    assert second == Batch(b"[{}]", text.index(b"[{}]"))
    assert third == Frame(b'{"schemaVersion":1,"traceEvents":[],"z":2}', is_whole=True)


@given(events=EVENTS, before=VALUES, after=VALUES, indent=st.sampled_from([None, 0, 2]))
def test_every_trace_is_taken_apart_without_loss(
    events: list[Any], before: Any, after: Any, indent: int | None
) -> None:
    whole = {"before": before, "traceEvents": events, "after": after}

    found, frames = split(json.dumps(whole, indent=indent).encode())

    assert found == events
    assert frames == [{"before": before, "traceEvents": [], "after": after}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"traceEvents":[{}', "ends too early"),
        (b'{"traceEvents":[{}]', "ends too early"),
        (b'{"traceEvents":[{"a":"', "ends too early"),
        (b"12", "ends too early"),
        (b'{"traceEvents":[]}]', "closing bracket too many"),
        (b"]", "closing bracket too many"),
        (b'{"traceEvents":[' + b"[" * 1000, "nested deeper"),
    ],
)
def test_brackets_that_do_not_match_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(ProfileFormatError, match=message):
        split(content)


def test_events_without_a_comma_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_split, "BLOCK", 18)

    with pytest.raises(ProfileFormatError, match="no comma"):
        split(b'{"traceEvents":[{} {}]}')


@pytest.mark.parametrize("start", [b'{"traceEvents":[{"a":"', b'{"b":"', b"["])
def test_a_value_without_end_is_refused_early(
    start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_split, "BLOCK", 1 << 10)
    monkeypatch.setattr(trace_split, "MAX_PIECE", 1 << 14)

    with pytest.raises(ProfileFormatError, match="larger than"):
        split(start + b"x" * (1 << 20))


def test_much_beside_the_events_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_split, "BLOCK", 1 << 10)
    monkeypatch.setattr(trace_split, "MAX_PIECE", 1 << 14)

    with pytest.raises(ProfileFormatError, match="beside the events"):
        split(b'{"a":[' + b"[1]," * (1 << 14) + b'1],"traceEvents":[]}')


def test_memory_does_not_grow_with_the_trace() -> None:
    event = b'{"ph":"X","name":"aten::mm","ts":1.5,"dur":2.5},'
    content = b'{"traceEvents":[' + event * 600_000 + b"{}]}"
    stream = io.BytesIO(content)

    tracemalloc.start()
    largest = max(len(piece.content) for piece in split_trace(stream, "x"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert largest <= trace_split.BLOCK + len(event) + 2
    assert peak < 16 * trace_split.BLOCK < len(content)

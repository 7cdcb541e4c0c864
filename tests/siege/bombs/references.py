"""Contents that a Perfetto file holds once and refers to often, by a few bytes each time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable

from siege.bombs.kinds import FIRST, kind_of, packet

from proton_bench.formats.protobuf import Message

kind = kind_of("references")
CATEGORY, NAME, KEY, TEXT = 1, 2, 3, 29  # tables of interned texts
LONG = 1 << 20
CLEARED = packet(Message().number(8, 1).number(10, 1).number(13, 1))
PATH, WHOLE = 1, 2  # numbers of a key and a text


def interned(*entries: tuple[int, int, str]) -> bytes:
    """Return the packet that interns texts: table, number, text."""
    head = Message()
    for table, number, text in entries:
        head.message(table, Message().number(1, number).text(2, text))
    return packet(Message().number(10, 1).message(12, head))


def annotation(key: int, text: int) -> Message:
    return Message().number(1, key).number(17, text)


def event(track: int = 1, *annotations: Message, name: int = 0, text: str = "") -> Message:
    """Return the beginning of a slice."""
    found = Message().number(9, 1).number(10, name).number(11, track)
    for each in annotations:
        found.message(4, each)
    return found.text(23, text) if text else found


def begun(at: int, found: Message, sequence: int = 1) -> bytes:
    return packet(Message().number(8, at).number(10, sequence).message(11, found))


def ended(at: int, track: int = 1, sequence: int = 1) -> bytes:
    found = Message().number(9, 2).number(11, track)
    return packet(Message().number(8, at).number(10, sequence).message(11, found))


def slices(found: Iterable[Message], track: int = 1) -> bytes:
    return b"".join(
        begun(2 * at + 9, each) + ended(2 * at + 10, track) for at, each in enumerate(found)
    )


def described(uuid: int, name: str, parent: int = 0) -> bytes:
    head = Message().number(1, uuid).text(2, name).number(5, parent)
    return packet(Message().number(10, 1).message(60, head))


def path_of(count: int, last: str = "n") -> str:
    return json.dumps(["ROOT", *(f"{last}{number}" for number in range(count))])


@kind(".pftrace", is_quick=True)
def call_path_of_many_scopes() -> bytes:
    head = interned((KEY, PATH, "call_stack"), (TEXT, WHOLE, path_of(20_000)))
    return gzip.compress(
        CLEARED + head + slices([event(1, annotation(PATH, WHOLE), name=9)] * 40_000)
    )


@kind(".pftrace", is_quick=True)
def call_path_of_many_kernels() -> bytes:
    head = interned((KEY, PATH, "call_stack"), (TEXT, WHOLE, path_of(20_000)))
    work = [event(5, annotation(PATH, WHOLE), name=9)] * 40_000
    return gzip.compress(CLEARED + described(5, "GPU 0") + head + slices(work, 5))


@kind(".pftrace")
def call_paths_of_kernels_on_many_devices() -> bytes:
    head = interned((KEY, PATH, "call_stack"), (TEXT, WHOLE, path_of(2000)))
    tracks = range(5, 3000)
    work = b"".join(
        described(track, f"GPU {track}") + slices([event(track, annotation(PATH, WHOLE))], track)
        for track in tracks
    )
    return CLEARED + head + work


def instants(name: str, count: int, *annotations: Message, sequences: bool = False) -> bytes:
    """Return instant events that sessions write about themselves."""
    found = Message().number(9, 3).number(11, 1).text(23, name)
    for each in annotations:
        found.message(4, each)
    numbers = range(1, 1 + count)
    return b"".join(begun(9, found, number if sequences else 1) for number in numbers)


@kind(".pftrace")
def provenance_of_many_ends() -> bytes:
    facts = json.dumps({f"k{number}": "v" for number in range(60_000)})
    head = interned((KEY, PATH, "provenance"), (TEXT, WHOLE, facts))
    ends = instants("proton_bench: end of session", 20_000, annotation(PATH, WHOLE))
    return CLEARED + head + ends


@kind(".pftrace")
def provenance_of_many_sequences() -> bytes:
    facts = json.dumps({f"k{number}": "v" for number in range(1000)})
    parts = [
        packet(
            Message().number(8, 1).number(10, number).number(13, 1)
            .message(12, Message().message(KEY, Message().number(1, 1).text(2, "provenance")))
        )
        + begun(
            9,
            Message().number(9, 3).number(11, 1).text(23, "proton_bench: end of session")
            .message(4, Message().number(1, 1).text(6, facts if number < 400 else "{}")),
            number,
        )
        for number in range(1, 9000)
    ]  # fmt: skip
    return FIRST + b"".join(parts)


@kind(".pftrace")
def facts_of_many_starts() -> bytes:
    keys = [(KEY, 1 + number, f"k{number}") for number in range(300)]
    head = interned(*keys, (TEXT, 1, "x" * LONG))
    facts = [annotation(1 + number, 1) for number in range(300)]
    return CLEARED + head + instants("proton_bench: start of session", 3000, *facts)


@kind(".pftrace", is_quick=True)
def long_text_of_many_rows() -> bytes:
    head = interned((KEY, 1, "call_stack"), (KEY, 2, "note"), (TEXT, 1, "x" * LONG))
    found = (
        event(1, Message().number(1, 1).text(6, f'["n{number}"]'), annotation(2, 1))
        for number in range(20_000)
    )
    return gzip.compress(CLEARED + head + slices(found))


@kind(".pftrace")
def long_name_in_itself() -> bytes:
    head = interned((NAME, 7, "x" * LONG))
    inner = b"".join(begun(number, event(1, name=7)) for number in range(9, 4000))
    return CLEARED + head + inner + b"".join(ended(number) for number in range(9000, 9000 + 3990))


@kind(".pftrace")
def long_names_side_by_side() -> bytes:
    names = [(NAME, 7 + number, f"{number}" + "x" * 50_000) for number in range(150)]
    found = (event(1, name=7 + number % 150) for number in range(60_000))
    return gzip.compress(CLEARED + interned(*names) + slices(found))


@kind(".pftrace")
def vector_that_adds_up() -> bytes:
    head = interned(
        (KEY, 1, "call_stack"), (TEXT, 1, '["n"]'),
        (KEY, 2, "v"), (TEXT, 2, f"[{'1,' * 200_000}1]"),
    )  # fmt: skip
    found = [event(1, annotation(1, 1), annotation(2, 2))] * 20_000
    return gzip.compress(CLEARED + head + slices(found))


@kind(".pftrace")
def many_metrics_of_one_key_each() -> bytes:
    keys = [(KEY, 2 + number, f"m{number}") for number in range(3000)]
    head = interned((KEY, 1, "call_stack"), (TEXT, 1, '["n"]'), (TEXT, 2, "5"), *keys)
    metrics = [annotation(2 + number, 2) for number in range(3000)]
    found = [event(1, annotation(1, 1), *metrics)] * 300
    return gzip.compress(CLEARED + head + slices(found))


@kind(".pftrace")
def texts_that_are_no_utf8() -> bytes:
    entry = Message().number(1, 7).packed(2, b"\xff" * 9_000_000)
    head = packet(Message().number(10, 1).message(12, Message().message(NAME, entry)))
    return gzip.compress(CLEARED + head + slices([event(1, name=7)] * 9))


@kind(".pftrace")
def meanings_that_change() -> bytes:
    long = interned((NAME, 7, "x" * 1000)), interned((NAME, 7, "y" * 1000))
    part = slices([event(1, name=7)])
    return gzip.compress(CLEARED + b"".join(long[n % 2] + part for n in range(60_000)))


@kind(".pftrace")
def tracks_below_a_long_name() -> bytes:
    parts = [described(2, "G" * LONG)]
    for number in range(3, 12_000):
        track = described(number, f"t{number}", number - 1)
        parts.append(track + slices([event(number, text="n")], number))
    return CLEARED + b"".join(parts)


@kind(".pftrace")
def maps_of_one_key() -> bytes:
    head = interned((KEY, 1, "k" * LONG), (TEXT, 1, "v" * LONG))
    inner = Message()
    for _ in range(500):
        inner.message(11, annotation(1, 1))
    found = [event(1, Message().text(10, "metrics").message(11, inner), text="n")] * 900
    return CLEARED + head + slices(found)

"""Timelines whose sessions left profiles that lie, or too many of them."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable

import numpy as np
from siege.bombs.deep import line, session
from siege.bombs.kinds import KINDS, edited, grown, kind_of, packet
from siege.bombs.references import described

from proton_bench.formats.protobuf import Message

kind = kind_of("nesting")
SMALL = edited(lambda _: None)
START = Message().number(9, 3).text(23, "proton_bench: start of session")
PIECE = b'{"args":{"profile":"%s","rest":%d},"name":"proton_bench.profile","ph":"M","pid":%d}'


def started(sequence: int) -> bytes:
    return packet(Message().number(8, 1).number(10, sequence).message(11, START))


def piece(content: bytes, rest: int = 0, sequence: int = 1) -> bytes:
    inner = Message().number(1, rest).packed(2, content)
    return packet(Message().number(10, sequence).message(1984, inner))


def pieces(contents: Iterable[bytes]) -> bytes:
    """Return a timeline of ours in Chrome's format; all pieces are the last of a profile."""
    made = (PIECE % (base64.b64encode(each), 0, 7) for each in contents)
    return gzip.compress(session(made))


@kind(".pftrace", is_quick=True)
def profiles_of_many_sessions() -> bytes:
    each = [started(number) + piece(SMALL, sequence=number) for number in range(1, 20_000)]
    return gzip.compress(b"".join(each))


@kind(".pftrace")
def profile_in_crumbs() -> bytes:
    return gzip.compress(started(1) + piece(b"x", rest=1) * 2_000_000)


@kind(".pftrace")
def pieces_of_nothing() -> bytes:
    return gzip.compress(started(1) + piece(b"") * 2_000_000)


@kind(".pftrace")
def profiles_that_never_end() -> bytes:
    each = (piece(SMALL, rest=1, sequence=number) for number in range(300_000))
    return gzip.compress(started(1) + b"".join(each))


@kind(".pftrace")
def embedded_chain_of_kernels() -> bytes:
    return started(1) + piece(grown(line(100_000)))


@kind(".pftrace")
def embedded_profile_of_zeros() -> bytes:
    return gzip.compress(started(1) + piece(bytes(100_000_000)))


@kind(".pftrace")
def embedded_bomb() -> bytes:
    inner = KINDS["chain_of_names.proton"].files()["chain_of_names.proton"]
    return started(1) + piece(inner) + started(2) + piece(inner, sequence=2)


@kind(".pftrace")
def profiles_on_devices_of_their_own() -> bytes:
    wide = grown(np.array([-1, 0], dtype="<i4"))
    each = [started(number) + piece(wide, sequence=number) for number in range(1, 900)]
    return gzip.compress(described(1, "t") + b"".join(each))


@kind(".json.gz", is_quick=True)
def pieces_of_nothing_in_base64() -> bytes:
    return pieces(b"" for _ in range(90_000))


@kind(".json.gz")
def zeros_in_base64() -> bytes:
    return pieces([bytes(60_000_000)])


@kind(".json.gz")
def profiles_in_base64() -> bytes:
    return pieces(SMALL for _ in range(20_000))

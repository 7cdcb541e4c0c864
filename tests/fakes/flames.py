"""Reading back what formats of flame graphs hold: the weight of each call path."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

Stacks = Counter[tuple[str, ...]]


def speedscope_stacks(content: bytes, metric: str) -> Stacks:
    """Return the weight of each stack of names; checks that events nest and time never turns."""
    document = json.loads(content)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    (profile,) = (each for each in document["profiles"] if each["name"] == metric)
    found: Stacks = Counter()
    opened: list[int] = []
    before = profile["startValue"]
    for event in profile["events"]:
        assert event["at"] >= before
        if event["at"] > before:
            found[tuple(names[frame] for frame in opened)] += event["at"] - before
        before = event["at"]
        if event["type"] == "O":
            opened.append(event["frame"])
        else:
            assert opened.pop() == event["frame"]
    assert not opened
    assert before == profile["endValue"]
    return found


def folded_stacks(content: bytes) -> Stacks:
    """Return the weight of each line."""
    found: Stacks = Counter()
    for line in content.decode().splitlines():
        stack, _, weight = line.rpartition(" ")
        found[tuple(stack.split(";"))] += int(weight)
    return found


def fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field of a protobuf message: integers and bytes only."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = content[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(content):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2
            size = varint()
            yield key >> 3, content[place : place + size]
            place += size


def packed(content: bytes) -> list[int]:
    """Return packed integers."""
    found = [0]
    shift = 0
    for byte in content:
        found[-1] |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(0)
            shift = 0
    return found[:-1]


def pprof_stacks(content: bytes, metric: str) -> Stacks:
    """Return the weight of each stack of names, outermost first."""
    whole = list(fields(gzip.decompress(content)))
    texts = [value.decode() for number, value in whole if number == 6]
    types = [texts[dict(fields(value))[1]] for number, value in whole if number == 1]
    functions = {}
    for number, value in whole:
        if number == 5:
            parts = dict(fields(value))
            functions[parts[1]] = texts[parts.get(2, 0)]
    locations = {}
    for number, value in whole:
        if number == 4:
            parts = dict(fields(value))
            locations[parts[1]] = functions[dict(fields(parts[4]))[1]]
    column = types.index(metric)
    found: Stacks = Counter()
    for number, value in whole:
        if number == 2:
            parts = dict(fields(value))
            stack = tuple(locations[each] for each in reversed(packed(parts[1])))
            weight = packed(parts[2])[column]
            if weight:
                found[stack] += weight
    return found

"""Reading back what formats of flame graphs hold: the weight of each call path."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

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


def otlp_profiles(content: bytes) -> Any:
    """Return the message ProfilesData, read by OpenTelemetry's own package."""
    protos = pytest.importorskip("opentelemetry.proto.profiles.v1development.profiles_pb2")
    return protos.ProfilesData.FromString(content)


def otlp_stacks(content: bytes, metric: str) -> Stacks:
    """Return the weight of each stack of names, outermost first, without a root."""
    data = otlp_profiles(content)
    tables, texts = data.dictionary, data.dictionary.string_table
    names = [
        [texts[tables.function_table[line.function_index].name_strindex] for line in place.lines]
        for place in tables.location_table
    ]
    found: Stacks = Counter()
    for profile in data.resource_profiles[0].scope_profiles[0].profiles:
        if texts[profile.sample_type.type_strindex] == metric:
            for sample in profile.samples:
                places = tables.stack_table[sample.stack_index].location_indices
                stack = tuple(name for place in reversed(places) for name in names[place])
                found[stack] += sum(sample.values)
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

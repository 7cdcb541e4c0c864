"""Reads OTLP: samples of all profiles, summed by call path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from proton_bench.formats.base import corrupt, plain_map
from proton_bench.formats.budget import Limit, take
from proton_bench.formats.otlp import schema
from proton_bench.formats.otlp.attributes import (
    SERVICE_NAME,
    devices_of,
    dropped_of,
    facts_of,
    is_partial,
)
from proton_bench.formats.otlp.dictionary import UNKNOWN, Dictionary
from proton_bench.formats.otlp.messages import (
    Fields,
    fields_of,
    messages_of,
    number_of,
    numbers_of,
)
from proton_bench.formats.otlp.values import read_key_value
from proton_bench.formats.path_tree import PathTree, Reading
from proton_bench.formats.protobuf import DamagedMessage, signed, text_of
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

__all__ = ["decode_profile"]

_BYTES_OF_TIME = 8
_STRINGS = schema.ProfilesDictionary.STRING_TABLE
_ADVICE = (
    "it is damaged, or not of development version 1 of OTLP profiles, which this release reads"
)


def decode_profile(content: bytes, source: str) -> Profile:
    """Return the profile in a message ProfilesData.

    Args:
        content: The whole file.
        source: Its name, for messages.

    Raises:
        ProfileFormatError: The content is damaged or too large, or of an older protocol.
    """
    try:
        return _Reader(content, source).profile()
    except DamagedMessage as error:
        raise corrupt(source, str(error), _ADVICE) from None


class _Reader:
    """Adds the samples of a file to one tree."""

    def __init__(self, content: bytes, source: str) -> None:
        whole = fields_of(content)
        if schema.ProfilesData.RESOURCE_PROFILES not in whole:
            raise DamagedMessage("it holds no profiles")
        dictionaries = whole.get(schema.ProfilesData.DICTIONARY, [b""])
        if len(dictionaries) > 1:
            raise DamagedMessage("it holds several files, one after the other")
        tables = fields_of(dictionaries[0])
        strings = [text_of(each) for each in tables.get(_STRINGS, ())]
        self._reading = Reading(source)
        self._tree = PathTree()
        self._resources = [
            (_attributes(each, strings), each)
            for each in messages_of(whole, schema.ProfilesData.RESOURCE_PROFILES)
        ]
        devices: dict[str, Device] = {}
        for attributes, _ in self._resources:
            devices = devices_of(attributes) | devices
        self._devices = dict(enumerate(devices.values()))
        self._dictionary = Dictionary(tables, strings, tree=self._tree, devices=tuple(devices))
        self._rows: dict[tuple[int, int], int] = {}  # of a stack below a row
        self._walked: set[int] = set()  # stacks that have rows
        self._below: dict[tuple[int, int], int] = {}  # of a location below a row
        self._times_ns: list[tuple[int, int]] = []

    def profile(self) -> Profile:
        """Return the profile."""
        for attributes, resource in self._resources:
            top = 0
            if len(self._resources) > 1:
                name = self._tree.strings.index(str(attributes.get(SERVICE_NAME) or UNKNOWN))
                top = self._tree.row(0, name, FrameKind.SCOPE)
            for scoped in messages_of(resource, schema.ResourceProfiles.SCOPE_PROFILES):
                for profile in messages_of(scoped, schema.ScopeProfiles.PROFILES):
                    self._add(profile, top)
            for reason, count in dropped_of(attributes).items():
                self._reading.drop(reason, count)
        self._reading.provenance = plain_map(self._facts(), self._reading.source)
        built = self._tree.build(self._reading, self._devices)
        return replace(built, partial=any(is_partial(each) for each, _ in self._resources))

    def _add(self, profile: Fields, top: int) -> None:
        """Add the samples of a profile below a row."""
        start_ns = number_of(profile, schema.Profile.TIME_UNIX_NANO)
        if start_ns:
            duration_ns = number_of(profile, schema.Profile.DURATION_NANO)
            self._times_ns.append((start_ns, start_ns + duration_ns))
        value_type = profile.get(schema.Profile.SAMPLE_TYPE, [b""])[-1]
        metric = self._dictionary.metric(fields_of(value_type))
        for sample in messages_of(profile, schema.Profile.SAMPLES):
            row = self._row(number_of(sample, schema.Sample.STACK_INDEX), top)
            self._tree.add(row, metric, _value(sample))

    def _row(self, stack: int, top: int) -> int:
        row = self._rows.get((stack, top))
        if row is None:
            row, locations = top, self._dictionary.stack(stack)
            if stack in self._walked:  # resources may share it, and few bytes would be many rows
                take(Limit.OBJECTS, len(locations))
            self._walked.add(stack)
            for location in reversed(locations):
                below = self._below.get((row, location))
                if below is None:
                    below = self._below[row, location] = self._new_row(row, location)
                row = below
            self._rows[stack, top] = row
        return row

    def _new_row(self, row: int, location: int) -> int:
        for frame in self._dictionary.frames(location):
            row = self._tree.row(row, frame.name, frame.kind, device=frame.device)
        return row

    def _facts(self) -> dict[str, Any]:
        """Return the facts that are the same of every resource, and the times of the profiles."""
        first, *others = [facts_of(attributes) for attributes, _ in self._resources]
        facts = {
            key: value
            for key, value in first.items()
            if all((key, value) in each.items() for each in others)
        }
        if self._times_ns:
            starts, ends = zip(*self._times_ns, strict=True)
            facts = {"start_time_ns": min(starts), "end_time_ns": max(ends)} | facts
        return facts


def _attributes(resource_profiles: Fields, strings: Sequence[str]) -> dict[str, Any]:
    resource = fields_of(resource_profiles.get(schema.ResourceProfiles.RESOURCE, [b""])[-1])
    return dict(
        read_key_value(each, strings)
        for each in resource.get(schema.Resource.ATTRIBUTES, ())
        if isinstance(each, bytes)
    )


def _value(sample: Fields) -> int:
    """Return the sum of a sample; without values each of its times counts as 1."""
    if schema.Sample.VALUES in sample:
        return sum(map(signed, numbers_of(sample, schema.Sample.VALUES)))
    times = sample.get(schema.Sample.TIMESTAMPS_UNIX_NANO, ())
    return sum(len(each) // _BYTES_OF_TIME if isinstance(each, bytes) else 1 for each in times)

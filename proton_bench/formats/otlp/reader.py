"""Reads OTLP: samples of all profiles, summed by call path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from proton_bench.formats.base import corrupt, plain_map
from proton_bench.formats.budget import USUAL_TEXT, Limit, take
from proton_bench.formats.otlp import schema
from proton_bench.formats.otlp.attributes import (
    DEVICE_ID,
    FRAME_TYPE,
    SERVICE_NAME,
    devices_of,
    dropped_of,
    facts_of,
    is_partial,
    kind_of,
)
from proton_bench.formats.otlp.values import read_key_value, read_value
from proton_bench.formats.path_tree import PathTree, Reading
from proton_bench.formats.protobuf import (
    DamagedMessage,
    read_fields,
    read_numbers,
    signed,
    text_of,
)
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

__all__ = ["decode_profile"]

T = TypeVar("T")
Fields = dict[int, list[int | bytes]]

_UNITS = {"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s"}
_UNKNOWN = "[unknown]"
_BYTES_OF_TIME = 8
_ADVICE = "it is damaged, or not of development version 1 of OTLP profiles, which this release reads"


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


def _fields(content: int | bytes) -> Fields:
    """Return the values of each field of a message."""
    if isinstance(content, int):
        raise DamagedMessage("a number stands where a message should")
    found: Fields = {}
    for number, value in read_fields(content):
        found.setdefault(number, []).append(value)
    return found


def _messages(fields: Fields, number: int) -> Iterator[Fields]:
    found = fields.get(number, ())
    take(Limit.EVENTS, len(found))
    return map(_fields, found)


def _number(fields: Fields, number: int) -> int:
    """Return the last value of a field, as protobuf asks for; 0 without one."""
    value = fields.get(number, (0,))[-1]
    if isinstance(value, bytes):
        raise DamagedMessage("a text stands where a number should")
    return value


def _numbers(fields: Fields, number: int) -> list[int]:
    return [each for value in fields.get(number, ()) for each in read_numbers(value)]


def _at(table: Sequence[T], index: int, what: str) -> T:
    if index >= len(table):
        raise DamagedMessage(f"it names {what} {index} of {len(table)}")
    return table[index]


@dataclass(frozen=True, slots=True)
class _Frame:
    """A line of a location.

    Attributes:
        name: Position of its name in the strings of the tree.
        kind: Kind of its row.
        device: Number of its device, -1 for none.
    """

    name: int
    kind: FrameKind
    device: int


class _Dictionary:
    """The tables of a file.

    Args:
        fields: Those of the message ProfilesDictionary.
        strings: Its texts.
        tree: Gets the names of frames.
        devices: Identifiers of devices.
    """

    def __init__(
        self, fields: Fields, strings: Sequence[str], *, tree: PathTree, devices: Sequence[str]
    ) -> None:
        table = schema.ProfilesDictionary
        take(Limit.OBJECTS, sum(len(fields.get(each, ())) for each in _COUNTED))
        self._strings = strings
        self._tree = tree
        self._devices = {each: number for number, each in enumerate(devices)}
        self._functions = [
            tuple(self._text(each, field) for field in _NAMES)
            for each in _messages(fields, table.FUNCTION_TABLE)
        ]
        self._mappings = [
            self._text(each, schema.Mapping.FILENAME_STRINDEX)
            for each in _messages(fields, table.MAPPING_TABLE)
        ]
        self._attributes = [
            self._attribute(each) for each in _messages(fields, table.ATTRIBUTE_TABLE)
        ]
        self._locations = [self._location(each) for each in _messages(fields, table.LOCATION_TABLE)]
        self._stacks = fields.get(table.STACK_TABLE, [])

    def metric(self, value_type: Fields) -> str:
        """Return the name of a metric, with its unit unless it is a count of itself."""
        name = self._text(value_type, schema.ValueType.TYPE_STRINDEX) or _UNKNOWN
        unit = self._text(value_type, schema.ValueType.UNIT_STRINDEX)
        if unit in {"", "count", name}:
            return name
        return f"{name} ({_UNITS.get(unit, unit)})"

    def stack(self, index: int) -> list[int]:
        """Return the locations of a stack, the innermost first."""
        fields = _fields(_at(self._stacks, index, "stack"))
        found = _numbers(fields, schema.Stack.LOCATION_INDICES)
        take(Limit.EVENTS, len(found))
        return found

    def frames(self, location: int) -> tuple[_Frame, ...]:
        """Return the frames of a location, the outermost first."""
        found = _at(self._locations, location, "location")
        if len(found) > 1:  # else its stack has counted it
            take(Limit.EVENTS, len(found))
        return found

    def _text(self, fields: Fields, number: int) -> str:
        return _at(self._strings, _number(fields, number), "text")

    def _attribute(self, fields: Fields) -> tuple[str, Any]:
        key = self._text(fields, schema.KeyValueAndUnit.KEY_STRINDEX)
        value = fields.get(schema.KeyValueAndUnit.VALUE, [b""])[-1]
        return key, read_value(value, self._strings) if isinstance(value, bytes) else None

    def _location(self, fields: Fields) -> tuple[_Frame, ...]:
        """Return the frames of the message Location, which has the outermost last."""
        attributes = dict(
            _at(self._attributes, each, "attribute")
            for each in _numbers(fields, schema.Location.ATTRIBUTE_INDICES)
        )
        kind = kind_of(str(attributes.get(FRAME_TYPE)))
        device = self._devices.get(str(attributes.get(DEVICE_ID)), -1)
        names = [self._line(each, kind) for each in reversed(fields.get(schema.Location.LINES, ()))]
        return tuple(
            _Frame(self._tree.strings.index(name), kind, device)
            for name in names or [self._address(fields)]
        )

    def _line(self, content: int | bytes, kind: FrameKind) -> str:
        """Return the name of a row for a line of a function, as recordings write it."""
        fields = _fields(content)
        function, file = _at(
            self._functions, _number(fields, schema.Line.FUNCTION_INDEX), "function"
        )
        if not file:
            return function
        take(Limit.TEXT, max(0, len(function) + len(file) - USUAL_TEXT))
        line = signed(_number(fields, schema.Line.LINE))
        if kind is FrameKind.LINE:  # its function was shown as `file:line function`
            function = function.removeprefix(f"{file.rpartition('/')[2]}:{line}").lstrip()
        return f"{file}:{line}@{function}"

    def _address(self, fields: Fields) -> str:
        """Return the name of a row for a place that has no symbol."""
        file = _at(self._mappings, _number(fields, schema.Location.MAPPING_INDEX), "mapping")
        take(Limit.TEXT, max(0, len(file) - USUAL_TEXT))
        address = _number(fields, schema.Location.ADDRESS)
        return f"{file or _UNKNOWN}+{address:#x}" if file or address else _UNKNOWN


_NAMES = (schema.Function.NAME_STRINDEX, schema.Function.FILENAME_STRINDEX)
# Tables whose entries become texts or other objects.
_STRINGS = schema.ProfilesDictionary.STRING_TABLE
_COUNTED = (
    _STRINGS,
    schema.ProfilesDictionary.FUNCTION_TABLE,
    schema.ProfilesDictionary.ATTRIBUTE_TABLE,
    schema.ProfilesDictionary.LOCATION_TABLE,
)


class _Reader:
    """Adds the samples of a file to one tree."""

    def __init__(self, content: bytes, source: str) -> None:
        whole = _fields(content)
        if schema.ProfilesData.RESOURCE_PROFILES not in whole:
            raise DamagedMessage("it holds no profiles")
        tables = _fields(whole.get(schema.ProfilesData.DICTIONARY, [b""])[-1])
        strings = [text_of(each) for each in tables.get(_STRINGS, ())]
        self._reading = Reading(source)
        self._tree = PathTree()
        self._resources = [
            (_attributes(each, strings), each)
            for each in _messages(whole, schema.ProfilesData.RESOURCE_PROFILES)
        ]
        devices: dict[str, Device] = {}
        for attributes, _ in self._resources:
            devices = devices_of(attributes) | devices
        self._devices = dict(enumerate(devices.values()))
        self._dictionary = _Dictionary(tables, strings, tree=self._tree, devices=tuple(devices))
        self._rows: dict[tuple[int, int], int] = {}  # of a stack below a row
        self._walked: set[int] = set()  # stacks that have rows
        self._below: dict[tuple[int, int], int] = {}  # of a location below a row
        self._times_ns: list[tuple[int, int]] = []

    def profile(self) -> Profile:
        """Return the profile."""
        for attributes, resource in self._resources:
            top = 0
            if len(self._resources) > 1:
                name = self._tree.strings.index(str(attributes.get(SERVICE_NAME) or _UNKNOWN))
                top = self._tree.row(0, name, FrameKind.SCOPE)
            for scoped in _messages(resource, schema.ResourceProfiles.SCOPE_PROFILES):
                for profile in _messages(scoped, schema.ScopeProfiles.PROFILES):
                    self._add(profile, top)
            for reason, count in dropped_of(attributes).items():
                self._reading.drop(reason, count)
        self._reading.provenance = plain_map(self._facts(), self._reading.source)
        built = self._tree.build(self._reading, self._devices)
        return replace(built, partial=any(is_partial(each) for each, _ in self._resources))

    def _add(self, profile: Fields, top: int) -> None:
        """Add the samples of a profile below a row."""
        start_ns = _number(profile, schema.Profile.TIME_UNIX_NANO)
        if start_ns:
            duration_ns = _number(profile, schema.Profile.DURATION_NANO)
            self._times_ns.append((start_ns, start_ns + duration_ns))
        value_type = profile.get(schema.Profile.SAMPLE_TYPE, [b""])[-1]
        metric = self._dictionary.metric(_fields(value_type))
        for sample in _messages(profile, schema.Profile.SAMPLES):
            row = self._row(_number(sample, schema.Sample.STACK_INDEX), top)
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
    resource = _fields(resource_profiles.get(schema.ResourceProfiles.RESOURCE, [b""])[-1])
    return dict(
        read_key_value(each, strings)
        for each in resource.get(schema.Resource.ATTRIBUTES, ())
        if isinstance(each, bytes)
    )


def _value(sample: Fields) -> int:
    """Return the sum of a sample; without values each of its times counts as 1."""
    if schema.Sample.VALUES in sample:
        return sum(map(signed, _numbers(sample, schema.Sample.VALUES)))
    times = sample.get(schema.Sample.TIMESTAMPS_UNIX_NANO, ())
    return sum(len(each) // _BYTES_OF_TIME if isinstance(each, bytes) else 1 for each in times)

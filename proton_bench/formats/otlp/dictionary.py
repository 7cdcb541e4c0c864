"""The dictionary of a file: texts, functions, locations and stacks, which samples name by index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from proton_bench.formats.budget import USUAL_TEXT, Limit, take
from proton_bench.formats.export.flame_rows import UNITS
from proton_bench.formats.otlp import schema
from proton_bench.formats.otlp.attributes import DEVICE_ID, FRAME_TYPE, kind_of
from proton_bench.formats.otlp.messages import (
    Fields,
    fields_of,
    messages_of,
    number_of,
    numbers_of,
)
from proton_bench.formats.otlp.values import read_value
from proton_bench.formats.path_tree import PathTree
from proton_bench.formats.protobuf import DamagedMessage, signed
from proton_bench.model.frame import FrameKind

__all__ = ["UNKNOWN", "Dictionary", "Frame"]

T = TypeVar("T")

UNKNOWN = "[unknown]"
_SHORT_UNITS = {spelled: unit for unit, spelled in UNITS.items()}
_NAMES = (schema.Function.NAME_STRINDEX, schema.Function.FILENAME_STRINDEX)
# Tables whose entries become texts or other objects.
_COUNTED = (
    schema.ProfilesDictionary.STRING_TABLE,
    schema.ProfilesDictionary.FUNCTION_TABLE,
    schema.ProfilesDictionary.ATTRIBUTE_TABLE,
    schema.ProfilesDictionary.LOCATION_TABLE,
)


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of a location.

    Attributes:
        name: Position of its name in the strings of the tree.
        kind: Kind of its row.
        device: Number of its device, -1 for none.
    """

    name: int
    kind: FrameKind
    device: int


class Dictionary:
    """The tables of a file, and the frames that its locations name.

    A file that names an entry that does not exist is damaged: `DamagedMessage`.

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
            for each in messages_of(fields, table.FUNCTION_TABLE)
        ]
        self._mappings = [
            self._text(each, schema.Mapping.FILENAME_STRINDEX)
            for each in messages_of(fields, table.MAPPING_TABLE)
        ]
        self._attributes = [
            self._attribute(each) for each in messages_of(fields, table.ATTRIBUTE_TABLE)
        ]
        self._locations = [
            self._location(each) for each in messages_of(fields, table.LOCATION_TABLE)
        ]
        self._stacks = fields.get(table.STACK_TABLE, [])

    def metric(self, value_type: Fields) -> str:
        """Return the name of a metric, with its unit unless it is a count of itself."""
        name = self._text(value_type, schema.ValueType.TYPE_STRINDEX) or UNKNOWN
        unit = self._text(value_type, schema.ValueType.UNIT_STRINDEX)
        if unit in {"", "count", name}:
            return name
        return f"{name} ({_SHORT_UNITS.get(unit, unit)})"

    def stack(self, index: int) -> list[int]:
        """Return the locations of a stack, the innermost first."""
        fields = fields_of(_at(self._stacks, index, "stack"))
        found = numbers_of(fields, schema.Stack.LOCATION_INDICES)
        take(Limit.EVENTS, len(found))
        return found

    def frames(self, location: int) -> tuple[Frame, ...]:
        """Return the frames of a location, the outermost first."""
        found = _at(self._locations, location, "location")
        if len(found) > 1:  # else its stack has counted it
            take(Limit.EVENTS, len(found))
        return found

    def _text(self, fields: Fields, number: int) -> str:
        return _at(self._strings, number_of(fields, number), "text")

    def _attribute(self, fields: Fields) -> tuple[str, Any]:
        key = self._text(fields, schema.KeyValueAndUnit.KEY_STRINDEX)
        value = fields.get(schema.KeyValueAndUnit.VALUE, [b""])[-1]
        return key, read_value(value, self._strings) if isinstance(value, bytes) else None

    def _location(self, fields: Fields) -> tuple[Frame, ...]:
        """Return the frames of the message Location, which has the outermost last."""
        attributes = dict(
            _at(self._attributes, each, "attribute")
            for each in numbers_of(fields, schema.Location.ATTRIBUTE_INDICES)
        )
        kind = kind_of(str(attributes.get(FRAME_TYPE)))
        device = self._devices.get(str(attributes.get(DEVICE_ID)), -1)
        names = [self._line(each, kind) for each in reversed(fields.get(schema.Location.LINES, ()))]
        return tuple(
            Frame(self._tree.strings.index(name), kind, device)
            for name in names or [self._address(fields)]
        )

    def _line(self, content: int | bytes, kind: FrameKind) -> str:
        """Return the name of a row for a line of a function, as recordings write it."""
        fields = fields_of(content)
        function, file = _at(
            self._functions, number_of(fields, schema.Line.FUNCTION_INDEX), "function"
        )
        if not file:
            return function
        take(Limit.TEXT, max(0, len(function) + len(file) - USUAL_TEXT))
        line = signed(number_of(fields, schema.Line.LINE))
        if kind is FrameKind.LINE:  # its function was shown as `file:line function`
            function = function.removeprefix(f"{file.rpartition('/')[2]}:{line}").lstrip()
        return f"{file}:{line}@{function}"

    def _address(self, fields: Fields) -> str:
        """Return the name of a row for a place that has no symbol."""
        file = _at(self._mappings, number_of(fields, schema.Location.MAPPING_INDEX), "mapping")
        take(Limit.TEXT, max(0, len(file) - USUAL_TEXT))
        address = number_of(fields, schema.Location.ADDRESS)
        return f"{file or UNKNOWN}+{address:#x}" if file or address else UNKNOWN


def _at(table: Sequence[T], index: int, what: str) -> T:
    if index >= len(table):
        raise DamagedMessage(f"it names {what} {index} of {len(table)}")
    return table[index]

"""Writes OTLP: tables of everything that call paths name, and samples that refer to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.formats.export.flame_rows import (
    MAX_DEPTH,
    flame_metrics,
    flame_rows,
    main_metric,
    run_times_ns,
    shallow,
    source_frame,
    spelled_unit,
    whole_numbers,
)
from proton_bench.formats.otlp import schema
from proton_bench.formats.otlp.attributes import (
    DEVICE_ID,
    FRAME_TYPE,
    device_id,
    frame_type,
    run_attributes,
    sample_attributes,
)
from proton_bench.formats.otlp.values import key_value, value_message
from proton_bench.formats.protobuf import Message, varint
from proton_bench.model.metrics.metric import MetricColumn
from proton_bench.model.profile import Profile

__all__ = ["encode_profile"]

_PROFILER = "proton_bench"
_ID_BYTES = 16
_TABLES = range(1, 8)  # fields of ProfilesDictionary


def encode_profile(profile: Profile) -> bytes:
    """Return the message ProfilesData: one Profile for each metric that adds up, the main first.

    Raises:
        MetricError: No metric adds up.
    """
    rows = shallow(flame_rows(profile), MAX_DEPTH)
    first = main_metric(rows)
    metrics = sorted(flame_metrics(rows), key=lambda each: each[0].spec.name != first)
    dictionary = _Dictionary(rows)
    profiles = [_profile(rows, dictionary, column, own=own) for column, own in metrics]
    tables, resource = bytes(dictionary.message()), Message()
    for key, value in run_attributes(rows).items():
        resource.message(schema.Resource.ATTRIBUTES, key_value(key, value))
    scoped = Message().message(schema.ScopeProfiles.SCOPE, _scope(rows))
    for each in profiles:
        content = b"".join((tables, bytes(resource), bytes(each)))
        # A profile that is sent twice can be recognized.
        identity = blake2b(content, digest_size=_ID_BYTES, usedforsecurity=False).digest()
        each.content(schema.Profile.PROFILE_ID, identity)
        scoped.message(schema.ScopeProfiles.PROFILES, each)
    whole = Message().message(schema.ResourceProfiles.RESOURCE, resource)
    whole.message(schema.ResourceProfiles.SCOPE_PROFILES, scoped)
    return bytes(
        Message()
        .message(schema.ProfilesData.RESOURCE_PROFILES, whole)
        .content(schema.ProfilesData.DICTIONARY, tables)
    )


def _scope(rows: Profile) -> Message:
    found = Message().text(schema.InstrumentationScope.NAME, _PROFILER)
    version = rows.provenance.get(_PROFILER)
    if isinstance(version, str):
        found.text(schema.InstrumentationScope.VERSION, version)
    return found


def _profile(
    rows: Profile, dictionary: _Dictionary, column: MetricColumn, *, own: npt.NDArray[Any]
) -> Message:
    """Return the message Profile of a metric, without its identifier."""
    unit = dictionary.text(spelled_unit(column.spec) or "count")
    metric = Message().number(schema.ValueType.TYPE_STRINDEX, dictionary.text(column.spec.base))
    metric.number(schema.ValueType.UNIT_STRINDEX, unit)
    found = Message().message(schema.Profile.SAMPLE_TYPE, metric)
    values = whole_numbers(column, own)
    for row in np.flatnonzero(values).tolist():
        sample = Message().number(schema.Sample.STACK_INDEX, dictionary.stack(row))
        sample.numbers(schema.Sample.ATTRIBUTE_INDICES, dictionary.device(row))
        sample.numbers(schema.Sample.VALUES, (int(values[row]),))
        found.message(schema.Profile.SAMPLES, sample)
    start_ns, duration_ns = run_times_ns(rows)
    found.fixed64(schema.Profile.TIME_UNIX_NANO, start_ns.to_bytes(8, "little"))
    return found.number(schema.Profile.DURATION_NANO, duration_ns)


class _Dictionary:
    """The message ProfilesDictionary, which grows as rows are written."""

    def __init__(self, rows: Profile) -> None:
        self._rows = rows
        # Index of each entry by its content; the empty one stands for nothing.
        self._tables: dict[int, dict[bytes, int]] = {field: {b"": 0} for field in _TABLES}
        self._paths = {0: b""}  # packed locations, the innermost first; the root is not one
        self._locations: dict[tuple[int, int, int], int] = {}
        self._samples = [self._attributes(sample_attributes(each, rows)) for each in rows.devices]

    def message(self) -> Message:
        """Return the message."""
        found = Message()
        for field, table in self._tables.items():
            for entry in table:
                found.content(field, entry)
        return found

    def text(self, text: str) -> int:
        """Return the index of a text, added if it is new."""
        content = text.encode("utf-8", "backslashreplace")
        return self._number(schema.ProfilesDictionary.STRING_TABLE, content)

    def stack(self, row: int) -> int:
        """Return the index of the call path of a row, added if it is new."""
        above, parents = [], self._rows.parents
        while row not in self._paths:
            above.append(row)
            row = int(parents[row])
        for each in reversed(above):
            self._paths[each] = varint(self._location(each)) + self._paths[row]
            row = each
        stack = Message().packed(schema.Stack.LOCATION_INDICES, self._paths[row])
        return self._number(schema.ProfilesDictionary.STACK_TABLE, bytes(stack))

    def device(self, row: int) -> Sequence[int]:
        """Return the indices of the attributes of a row's device, none without one."""
        device = int(self._rows.device_rows[row])
        return self._samples[device] if device >= 0 else ()

    def _number(self, field: int, entry: bytes) -> int:
        table = self._tables[field]
        return table.setdefault(entry, len(table))

    def _location(self, row: int) -> int:
        rows = self._rows
        key = (int(rows.frames[row]), int(rows.kinds[row]), int(rows.device_rows[row]))
        found = self._locations.get(key)  # many rows have the same
        if found is None:
            found = self._locations[key] = self._new_location(row)
        return found

    def _new_location(self, row: int) -> int:
        frame, device = source_frame(self._rows, row), self._rows.device(row)
        function = Message().number(schema.Function.NAME_STRINDEX, self.text(frame.name))
        function.number(schema.Function.FILENAME_STRINDEX, self.text(frame.file))
        number = self._number(schema.ProfilesDictionary.FUNCTION_TABLE, bytes(function))
        line = Message().number(schema.Line.FUNCTION_INDEX, number)
        location = Message().message(
            schema.Location.LINES, line.number(schema.Line.LINE, frame.line)
        )
        attributes = {FRAME_TYPE: frame_type(self._rows.kind(row), device)}
        if device is not None:
            attributes[DEVICE_ID] = device_id(device)
        location.numbers(schema.Location.ATTRIBUTE_INDICES, self._attributes(attributes))
        return self._number(schema.ProfilesDictionary.LOCATION_TABLE, bytes(location))

    def _attributes(self, attributes: Mapping[str, str]) -> list[int]:
        """Return the indices of attributes; one without a value is left out."""
        found = []
        for key, value in attributes.items():
            if value:
                entry = Message().number(schema.KeyValueAndUnit.KEY_STRINDEX, self.text(key))
                entry.message(schema.KeyValueAndUnit.VALUE, value_message(value))
                field = schema.ProfilesDictionary.ATTRIBUTE_TABLE
                found.append(self._number(field, bytes(entry)))
        return found

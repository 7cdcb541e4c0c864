"""Field numbers of OTLP's messages, which are named as there.

They are those of development version 1 of profiles, which is in release 1.45 of
``opentelemetry-proto``.
"""

from __future__ import annotations

__all__ = [
    "AnyValue",
    "ArrayValue",
    "Function",
    "InstrumentationScope",
    "KeyValue",
    "KeyValueAndUnit",
    "KeyValueList",
    "Line",
    "Location",
    "Mapping",
    "Profile",
    "ProfilesData",
    "ProfilesDictionary",
    "Resource",
    "ResourceProfiles",
    "Sample",
    "ScopeProfiles",
    "Stack",
    "ValueType",
]


class ProfilesData:
    """A file. A request to a collector has the same fields."""

    RESOURCE_PROFILES, DICTIONARY = 1, 2


class ResourceProfiles:
    """What one process recorded."""

    RESOURCE, SCOPE_PROFILES = 1, 2


class ScopeProfiles:
    """What one profiler recorded of it."""

    SCOPE, PROFILES = 1, 2


class Profile:
    """The samples of one metric."""

    SAMPLE_TYPE, SAMPLES, TIME_UNIX_NANO, DURATION_NANO, PROFILE_ID = 1, 2, 3, 4, 7


class Sample:
    """The values of one call path."""

    STACK_INDEX, ATTRIBUTE_INDICES, VALUES, TIMESTAMPS_UNIX_NANO = 1, 2, 4, 5


class ValueType:
    """A metric."""

    TYPE_STRINDEX, UNIT_STRINDEX = 1, 2


class ProfilesDictionary:
    """Tables that messages refer to by index; entry 0 of each stands for nothing."""

    MAPPING_TABLE, LOCATION_TABLE, FUNCTION_TABLE, LINK_TABLE = 1, 2, 3, 4
    STRING_TABLE, ATTRIBUTE_TABLE, STACK_TABLE = 5, 6, 7


class Mapping:
    """A binary in memory."""

    FILENAME_STRINDEX = 4


class Stack:
    """A call path, the innermost location first."""

    LOCATION_INDICES = 1


class Location:
    """A place in code; functions inlined there are further lines, the innermost first."""

    MAPPING_INDEX, ADDRESS, LINES, ATTRIBUTE_INDICES = 1, 2, 3, 4


class Line:
    """A line of a function."""

    FUNCTION_INDEX, LINE = 1, 2


class Function:
    """A function."""

    NAME_STRINDEX, SYSTEM_NAME_STRINDEX, FILENAME_STRINDEX = 1, 2, 3


class KeyValueAndUnit:
    """An attribute in the dictionary."""

    KEY_STRINDEX, VALUE = 1, 2


class Resource:
    """Facts about a process."""

    ATTRIBUTES = 1


class InstrumentationScope:
    """The profiler."""

    NAME, VERSION = 1, 2


class KeyValue:
    """An attribute."""

    KEY, VALUE, KEY_STRINDEX = 1, 2, 3


class AnyValue:
    """The value of an attribute: at most one field."""

    STRING_VALUE, BOOL_VALUE, INT_VALUE, DOUBLE_VALUE = 1, 2, 3, 4
    ARRAY_VALUE, KVLIST_VALUE, BYTES_VALUE, STRING_VALUE_STRINDEX = 5, 6, 7, 8


class ArrayValue:
    """Values."""

    VALUES = 1


class KeyValueList:
    """Attributes in an attribute."""

    VALUES = 1

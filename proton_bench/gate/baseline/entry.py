"""The files of a store: saved runs, what a name points to, and acknowledged steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from proton_bench.errors import ProfileFormatError
from proton_bench.gate.baseline.key import Key

__all__ = [
    "MOST_NUMBER",
    "Acknowledgement",
    "Acknowledgements",
    "Entry",
    "Pointer",
    "StoredRun",
    "decode_acknowledgements",
    "decode_entry",
    "decode_pointer",
    "is_id",
    "is_name",
    "is_old_scratch",
]

_ENTRY = "proton_bench.baseline"
_POINTER = "proton_bench.baseline_pointer"
_ACKNOWLEDGED = "proton_bench.acknowledged"
_VERSION = (1, 0)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{8}")
_OLD_SCRATCH = re.compile(r"pointer-[0-9]+")
# Larger numbers cannot be true, and would leave none for later entries.
MOST_NUMBER = (1 << 53) - 1
_MOST_NS = 1 << 63

T = TypeVar("T")


def is_name(text: str) -> bool:
    """Return whether a text can be a name in a store: it must not lead to another folder."""
    return _NAME.fullmatch(text) is not None


def is_id(text: str) -> bool:
    """Return whether a text has the form of the store's ids."""
    return _ID.fullmatch(text) is not None


def is_old_scratch(text: str) -> bool:
    """Return whether a text is the name of an unfinished pointer of an earlier version."""
    return _OLD_SCRATCH.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run of an entry.

    Attributes:
        file: Name of its file within the entry.
        source: Its original file.
        size: Bytes of the file.
        sha256: Their hash.
    """

    file: str
    source: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Runs that were saved together and never change.

    Attributes:
        id: Its id, from the time it was saved.
        name: Its baseline.
        created_ns: When it was saved, in ns since 1970.
        key: Device, driver and tools of the runs.
        runs: The runs.
        revision: Checked-out git revision of the recording, "" if unknown.
        number: Counts the entries of a store in the order in which they were saved, because clocks
            of machines differ; 0 in entries of earlier versions.
    """

    id: str
    name: str
    created_ns: int
    key: Key
    runs: tuple[StoredRun, ...]
    revision: str = ""
    number: int = 0

    @property
    def reference(self) -> str:
        """Its name on a command line."""
        return f"{self.name}@{self.id}"

    def encoded(self) -> bytes:
        """Return the input of `decode_entry`."""
        return _encoded(_ENTRY, self)


@dataclass(frozen=True, slots=True)
class Pointer:
    """The promoted entry of a baseline for one key.

    Attributes:
        entry: Id of the entry.
        promoted_ns: When it was promoted, in ns since 1970.
        number: Counts the promotions of a name; 0 in pointers of earlier versions.
    """

    entry: str
    promoted_ns: int
    number: int = 0

    def encoded(self) -> bytes:
        """Return the input of `decode_pointer`."""
        return _encoded(_POINTER, self)


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The acknowledged steps of one series.

    Attributes:
        series: Digest of the series' key.
        path: Path of the series, for people.
        metric: Its metric, for people.
        until_ns: Steps that begin later, in ns since 1970, are not acknowledged.
        by: Who acknowledged them: user and machine.
        at_ns: When, in ns since 1970.
        revision: Git revision of the newest point of the series then, "" if unknown.
    """

    series: str
    path: tuple[str, ...]
    metric: str
    until_ns: int
    by: str
    at_ns: int
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Acknowledgements:
    """All acknowledged steps of a store; the last acknowledgement of each series counts."""

    series: tuple[Acknowledgement, ...] = ()

    def encoded(self) -> bytes:
        """Return the input of `decode_acknowledgements`."""
        return _encoded(_ACKNOWLEDGED, self)

    def by_series(self) -> dict[str, Acknowledgement]:
        """Return them by the digests of their series."""
        return {each.series: each for each in self.series}


def decode_acknowledgements(content: bytes, source: str) -> Acknowledgements:
    """Return the acknowledgements in the content of a file.

    Raises:
        ProfileFormatError: It is corrupt, or of an unknown version.
    """
    mend = "remove it and acknowledge the steps again"
    found = _decoded(content, source, (_ACKNOWLEDGED, Acknowledgements), mend=mend)
    for each in found.series:
        _check_numbers(source, 0, each.until_ns, each.at_ns, mend=mend)
    return found


def decode_entry(content: bytes, source: str) -> Entry:
    """Return the entry in the content of a file.

    Raises:
        ProfileFormatError: It is corrupt, or of an unknown version.
    """
    entry = _decoded(content, source, (_ENTRY, Entry))
    if not all(map(is_name, (entry.id, entry.name, *(run.file for run in entry.runs)))):
        raise ProfileFormatError(f"{source}: names in it cannot be names of a store; save it again")
    _check_numbers(source, entry.number, entry.created_ns, *(run.size for run in entry.runs))
    return entry


def decode_pointer(content: bytes, source: str) -> Pointer:
    """Return the pointer in the content of a file.

    Raises:
        ProfileFormatError: It is corrupt, or of an unknown version.
    """
    pointer = _decoded(content, source, (_POINTER, Pointer))
    _check_numbers(source, pointer.number, pointer.promoted_ns)
    return pointer


def _check_numbers(source: str, number: int, *others: int, mend: str = "save it again") -> None:
    if not (0 <= number <= MOST_NUMBER and all(0 <= each < _MOST_NS for each in others)):
        raise ProfileFormatError(f"{source}: numbers in it cannot be true; {mend}")


_CORRUPT = (
    msgspec.MsgspecError,
    KeyError,
    TypeError,
    IndexError,
    ValueError,
    RecursionError,
)


def _encoded(schema: str, value: Any) -> bytes:
    plain = msgspec.to_builtins(value)
    document = {"schema": schema, "version": _VERSION, **plain}
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _decoded(
    content: bytes,
    source: str,
    wanted: tuple[str, type[T]],
    *,
    mend: str = "remove the entry and save it again",
) -> T:
    schema, kind = wanted
    try:
        document = msgspec.json.decode(content, type=dict[str, Any])
        if document.get("schema") != schema or document["version"][0] != _VERSION[0]:
            raise ProfileFormatError(f"{source}: not {schema} of version {_VERSION[0]}; {mend}")
        return msgspec.convert(document, kind)
    except _CORRUPT as error:
        if isinstance(error, ProfileFormatError):
            raise
        raise ProfileFormatError(
            f"{source}: the store's own file is corrupt ({error}); {mend}"
        ) from None

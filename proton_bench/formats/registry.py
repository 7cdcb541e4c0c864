"""The registry of file formats; reads and writes profiles by file name."""

from __future__ import annotations

import functools
import importlib
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from proton_bench.errors import PluginError, ProfileFormatError, UsageError
from proton_bench.formats.base import Format, StreamedFormat
from proton_bench.formats.limits import reading, take_bytes
from proton_bench.model.metrics.metric import ValueKind
from proton_bench.model.origin import is_partial_name
from proton_bench.model.profile import Profile
from proton_bench.model.steps import per_step
from proton_bench.support.files import write_file
from proton_bench.support.inputs import read_file, unreadable
from proton_bench.support.text import bytes_for, did_you_mean, visible


@dataclass(frozen=True)
class _BuiltIn:
    """One of our formats, whose module is imported when it is needed first."""

    suffixes: tuple[str, ...]
    module: str
    kind: str
    is_written: bool = True

    @functools.cached_property
    def format(self) -> Format:
        """The format itself."""
        module = importlib.import_module(f"proton_bench.formats.{self.module}")
        return cast("Format", getattr(module, self.kind)())


_known: dict[str, _BuiltIn | Format] = {
    "proton": _BuiltIn((".proton",), "native.file", "NativeFile"),
    "hatchet": _BuiltIn((".hatchet",), "hatchet.json_file", "HatchetJson"),
    "hatchet_msgpack": _BuiltIn((".hatchet_msgpack",), "hatchet.msgpack_file", "HatchetMsgpack"),
    "json": _BuiltIn((".json",), "export.json_file", "JsonFile"),
    # A profile has no events to write into a timeline.
    "chrome_trace": _BuiltIn(
        (".chrome_trace", ".pt.trace.json", ".pt.trace.json.gz", ".chrome_trace.gz", ".json.gz"),
        "chrome.file",
        "ChromeTrace",
        is_written=False,
    ),
    "perfetto": _BuiltIn(
        (".pftrace", ".perfetto-trace", ".pftrace.gz", ".perfetto-trace.gz"),
        "perfetto.file",
        "PerfettoFile",
        is_written=False,
    ),
    "nsys_sqlite": _BuiltIn(
        (".sqlite", ".nsys.sqlite", ".sqlite3"), "nsys.file", "NsysFile", is_written=False
    ),
    # Other tools cannot hold everything.
    "speedscope": _BuiltIn((".speedscope.json",), "export.flame_files", "SpeedscopeFile"),
    "folded": _BuiltIn((".folded",), "export.flame_files", "FoldedStacks"),
    "pprof": _BuiltIn((".pb.gz",), "export.flame_files", "PprofFile"),
    "csv": _BuiltIn((".csv",), "export.table_files", "CsvTable"),
    "parquet": _BuiltIn((".parquet",), "export.table_files", "ParquetTable"),
}
# They hold a whole profile.
FORMATS = ("proton", "hatchet", "hatchet_msgpack", "json")

PARTIAL = ".partial"
_CHECK = "PROTON_BENCH_CHECK"
_EMPTY_TRACE = ".chrome_trace"  # what Triton 3.6.0 writes when nothing ran
_SNIFFED = 1 << 16
_USUAL_TEXT = 256  # bytes; a file holds each text once, but reports repeat it for every row
_BYTES_OF_NUMBER = 64  # of a vector, as text


def formats() -> tuple[Format, ...]:
    """Return every known format: the built-in ones, then those of plugins."""
    return tuple(map(_format, _known.values()))


def _format(known: _BuiltIn | Format) -> Format:
    return known.format if isinstance(known, _BuiltIn) else known


def register_format(new: Format) -> None:
    """Make a format known; registering the same object again does nothing.

    Raises:
        PluginError: It is not a format, or its name or a suffix belongs to another one.
    """
    if not isinstance(new, Format):
        raise PluginError(
            f"{new!r} is not a file format; it needs name, suffixes, sniff, decode and encode"
        )
    for name, known in _known.items():
        if known is new:
            return
        if name == new.name or set(known.suffixes) & set(new.suffixes):
            raise PluginError(
                f"format {new.name!r} ({', '.join(new.suffixes)}) clashes with {name!r} "
                f"({', '.join(known.suffixes)}); give it another name and suffix"
            )
    _known[new.name] = new


def find_format(name: str) -> Format:
    """Return the format with this name.

    Raises:
        UsageError: There is none; the message names the existing ones.
    """
    try:
        return _format(_known[name])
    except KeyError:
        meant = did_you_mean(name, _writable()) or f"; choose from: {', '.join(_writable())}"
        raise UsageError(f"there is no file format {name!r}{meant}") from None


def find_format_of(path: str | os.PathLike[str]) -> Format:
    """Return the format of an output file by its suffix.

    Raises:
        UsageError: The suffix is unknown; the message names the known ones.
    """
    file = Path(path)
    found = _format_by_suffix(file)
    if found is None:
        suffixes = ", ".join(_known[name].suffixes[0] for name in _writable())
        raise UsageError(
            f"{visible(file)}: the suffix is not that of a format; use one of {suffixes}, or "
            f"choose one of {', '.join(_writable())} to write"
        )
    return found


def output_file(path: str | os.PathLike[str]) -> Path:
    """Return the file that holds a profile of this name: ``NAME.proton`` if it names no format.

    Raises:
        UsageError: It names no file, or a format that is read but not written.
    """
    file = Path(path)
    if file.name in {"", ".."}:
        raise UsageError(f"output {os.fspath(path)!r} names no file: add a name")
    found = _format_by_suffix(file)
    if found is None:
        return file.with_name(f"{file.name}.proton")
    if found.name not in _writable():
        raise UsageError(
            f"{visible(file)}: {found.name} is read but not written; choose from: "
            f"{', '.join(_writable())}"
        )
    return file


def _writable() -> list[str]:
    return [
        name
        for name, known in _known.items()
        if not isinstance(known, _BuiltIn) or known.is_written
    ]


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """Return the profile in a file of any known format.

    The suffix gives the format, unless the content is clearly of another one. A file
    named ``NAME.partial<suffix>`` is marked partial.

    Raises:
        UsageError: The file does not exist or cannot be opened.
        ProfileFormatError: The file is corrupt, or not a profile of a known format and version.
    """
    file = Path(path)
    found = streamed_format_of(file)
    if found is None:
        return decode_profile(_content(file), file)
    try:
        with reading(file.stat().st_size, visible(file)):
            profile = found.read(file, visible(file))
            _take_shown(profile)
    except OSError as error:
        raise unreadable(file, error, "profile") from None
    return _marked(profile, file)


def read_steps(paths: Sequence[str | os.PathLike[str]], *, whole: bool = False) -> list[Profile]:
    """Return the mean steady step of each recording; the whole ones unless all have steps.

    Args:
        paths: As of `read_profile`, which says what is raised.
        whole: Return the whole recordings in any case.
    """
    profiles = [read_profile(path) for path in paths]
    if whole or not all(profile.steady for profile in profiles):
        return profiles
    decode = find_format("proton").decode
    steps = [
        per_step(decode(profile.steady, visible(Path(path))), profile)
        for path, profile in zip(paths, profiles, strict=True)
    ]
    known = [step for step in steps if step is not None]
    return known if len(known) == len(profiles) else profiles


def decode_profile(content: bytes, path: str | os.PathLike[str]) -> Profile:
    """Return the profile in the content of a file; ``path`` names it and hints at the format.

    Raises:
        ProfileFormatError: The content is corrupt, or not a profile of a known format and version.
    """
    file = Path(path)
    source = visible(file)
    if not content and not file.name.endswith(_EMPTY_TRACE):
        raise ProfileFormatError(f"{source}: the file is empty; write it again")
    with reading(len(content), source):
        profile = _format_of(file, content, source).decode(content, source)
        _take_shown(profile)
    return _marked(profile, file)


def _take_shown(profile: Profile) -> None:
    """Charge texts and vectors as reports write them: every row with its own."""
    lengths = np.fromiter(map(len, profile.strings), np.int64, len(profile.strings))
    beyond = np.maximum(lengths - _USUAL_TEXT, 0)
    take_bytes(int(beyond[profile.frames].sum()))
    for column in profile.columns.values():
        if column.kind is ValueKind.STR:
            take_bytes(int(beyond[column.values[column.valid]].sum()))
        elif column.kind.is_vector:
            take_bytes(_BYTES_OF_NUMBER * len(column.values))


def _marked(profile: Profile, file: Path) -> Profile:
    if os.environ.get(_CHECK) == "1":
        _check(profile, visible(file))
    return replace(profile, partial=True) if is_partial_name(file.name) else profile


def _check(profile: Profile, source: str) -> None:
    from proton_bench.model.metrics.invariants import violations  # only where it is asked for

    found = violations(profile)
    if found:
        first = found[0]
        name = ascii(profile.name(first.row)[:80])
        raise ProfileFormatError(
            f"{source}: {len(found)} numbers cannot be true; row {first.row} ({name}), "
            f"{first.metric[:80]!a}: {first.rule} does not hold: {first.numbers}"
        )


def streamed_format_of(file: Path) -> StreamedFormat | None:
    """Return the format that reads this file in pieces, None if its content must be in memory."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return None  # a pipe can be read only once
        with file.open("rb") as stream:
            head = stream.read(_SNIFFED)
    except (OSError, ValueError):
        return None
    named = _format_by_suffix(file)
    if named is not None and named.sniff(head):
        return named if isinstance(named, StreamedFormat) else None
    found = _sniffed(head)
    return found if isinstance(found, StreamedFormat) else None


def write_profile(
    profile: Profile, path: str | os.PathLike[str], *, format: str | None = None
) -> tuple[str, ...]:
    """Write a profile atomically, and return messages about parts that the file lacks.

    Args:
        profile: What to write.
        path: File to replace; "-" writes to standard output. A link stays a link, and a device or
            pipe is written to, not replaced.
        format: Name of the format; None takes it from the suffix.

    Raises:
        UsageError: The format is unknown.
        OutputError: The file cannot be written; nothing is left behind.
    """
    file = Path(path)
    chosen = find_format(format) if format is not None else find_format_of(file)
    losses = getattr(chosen, "losses", None)
    notes = tuple(losses(profile)) if losses is not None else ()
    content = chosen.encode(profile)
    if str(path) == "-":
        sys.stdout.buffer.write(bytes_for(sys.stdout, content))
        sys.stdout.buffer.flush()
    else:
        write_file(file, content)
    return notes


def _content(file: Path) -> bytes:
    try:
        return read_file(file)
    except (OSError, ValueError) as error:
        raise unreadable(file, error, "profile") from None
    except MemoryError:
        raise UsageError(f"{visible(file)} is larger than the free memory") from None


def _format_by_suffix(file: Path) -> Format | None:
    """Return the format with the longest matching suffix: .speedscope.json is not .json."""
    fitting = [
        (len(suffix), known)
        for known in _known.values()
        for suffix in known.suffixes
        if file.name.endswith(suffix)
    ]
    return _format(max(fitting, key=lambda each: each[0])[1]) if fitting else None


def _format_of(file: Path, content: bytes, source: str) -> Format:
    named = _format_by_suffix(file)
    if named is not None and named.sniff(content):
        return named
    found = _sniffed(content)
    if found is not None:
        return found
    if named is not None:
        return named
    raise ProfileFormatError(
        f"{source}: neither suffix nor content is of a known format "
        f"({', '.join(_known)}); name a profile"
    )


def _sniffed(head: bytes) -> Format | None:
    # Timelines first, because hatchet's reader accepts every array as a tree.
    timelines = set(_known) - set(_writable())
    order = sorted(_known, key=lambda name: name not in timelines)
    return next((each for each in map(find_format, order) if each.sniff(head)), None)

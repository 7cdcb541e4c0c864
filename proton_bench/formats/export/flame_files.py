"""Files for the flame graphs of other tools, only written: folded stacks, speedscope and pprof."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from proton_bench.errors import MetricError
from proton_bench.formats.base import WriteOnly
from proton_bench.formats.protobuf import Message, varint
from proton_bench.model.arrays import Array, Integers
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, MetricSpec, ValueKind
from proton_bench.model.metrics.wall_times import with_self_times
from proton_bench.model.profile import Profile
from proton_bench.support.text import json_text, visible_lines

# Formats that write the whole path of each row: a file is as large as the rows times their depth.
MAX_DEPTH = 1000
# Preferred metrics of a flame graph; else the first one. Lines of kernels have only samples.
_FAVOURITES = ("num_samples", "time", "cycles", "cpu_time", "count")
# Units as pprof spells them.
UNITS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
_INT64 = range(2**63)
_PYTHON = re.compile(r"(?P<file>.*?):(?P<line>\d{1,9})@(?P<function>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FlameFrame:
    """The frame of a row.

    Attributes:
        name: Function, kernel or scope.
        file: File of a Python frame or of a line of a kernel, "" for others.
        line: Its line, 0 for others.
    """

    name: str
    file: str = ""
    line: int = 0


def flame_rows(profile: Profile) -> Profile:
    """Return the profile with the variants of a kernel as one row."""
    return profile.fold_variants()


def flame_frame(profile: Profile, row: int) -> FlameFrame:
    """Return the frame of a row, with the device in its name if there are several."""
    frame, device = _source_frame(profile, row), profile.device(row)
    if frame.file or device is None or len(profile.devices) == 1:
        return frame
    return FlameFrame(f"{frame.name} [{device.kind}:{device.index}]")


def _source_frame(profile: Profile, row: int) -> FlameFrame:
    """Return the frame of a row as its name gives it."""
    name = profile.name(row)
    match = _PYTHON.fullmatch(name)
    if match is not None:
        function, file, line = match["function"], match["file"], int(match["line"])
        if profile.kind(row) is FrameKind.LINE:  # all of a kernel's are of one function
            function = f"{file.rpartition('/')[2]}:{line} {function}".rstrip()
        return FlameFrame(function, file, line)
    return FlameFrame(name)


def flame_metrics(profile: Profile) -> list[tuple[MetricColumn, Array]]:
    """Return the metrics that add up over the tree, with each row's own values.

    Where none does, these are the self times of host ranges. NaN and negative values have no width:
    they are 0 here.

    Raises:
        MetricError: There is none.
    """
    found = _amounts(profile) or _amounts(with_self_times(profile))
    if not found:
        have = ", ".join(profile.columns) or "none"
        raise MetricError(
            f"a flame graph needs a metric that adds up and is above 0; the profile has: {have}"
        )
    return found


def _amounts(profile: Profile) -> list[tuple[MetricColumn, Array]]:
    found = []
    for column in profile.columns.values():
        if column.spec.aggregation is Aggregation.INCLUSIVE and column.kind.is_number:
            known = column.known & (column.values > 0)
            if known.any():
                found.append((column, np.where(known, column.values, 0)))
    return found


def main_metric(profile: Profile) -> str:
    """Return the name of the metric to show first."""
    specs = [column.spec for column, _ in flame_metrics(profile)]
    # The unit does not matter: time in us is preferred to a count.
    bases = [spec.base.lower() for spec in specs]
    found = next((name for name in _FAVOURITES if name in bases), bases[0])
    return specs[bases.index(found)].name


def spelled_unit(spec: MetricSpec) -> str:
    """Return the unit of a metric as pprof spells it, "" for none."""
    return "bytes" if spec.base == "bytes" else UNITS.get(spec.unit, spec.unit)


def run_times_ns(profile: Profile) -> tuple[int, int]:
    """Return the start of the run since 1970 and its duration, 0 where unknown."""
    known = (profile.provenance.get(f"{what}_time_ns") for what in ("start", "end"))
    start, end = (each if type(each) is int and each in _INT64 else 0 for each in known)
    return start, max(end - start, 0) if start and end else 0


def flame_losses(profile: Profile, kept: Sequence[str]) -> tuple[str, ...]:
    """Return messages about parts of this profile that a flame graph lacks.

    Args:
        profile: The profile.
        kept: Names of the metrics that are written.
    """
    notes = []
    facts = {
        "variants of kernels": profile.variants,
        "distributions": profile.distributions,
        "use of devices": profile.device_use,
        "provenance": profile.provenance,
    }
    lost = [what for what, known in facts.items() if len(known)]
    if lost:
        notes.append(f"a flame graph cannot hold {', '.join(lost)}")
    columns = {name: each for name, each in profile.columns.items() if bool(each.valid.any())}
    others = [name for name in columns if name not in kept]
    if others:
        notes.append(f"these metrics are left out: {', '.join(others)}")
    negative = [
        name for name in kept if bool((columns[name].values[columns[name].valid] < 0).any())
    ]
    if negative:
        notes.append(f"negative values are left out of {', '.join(negative)}")
    return tuple(notes)


def rounded_note(profile: Profile, kept: Sequence[str]) -> tuple[str, ...]:
    """Return a message about metrics that are rounded to whole numbers."""
    rounded = [
        column.spec.name
        for column, own in flame_metrics(profile)
        if column.spec.name in kept
        and column.kind is not ValueKind.INT
        and bool((own != np.rint(own)).any())
    ]
    return (f"values are rounded to whole numbers: {', '.join(rounded)}",) if rounded else ()


def depth_note(profile: Profile, most: int) -> tuple[str, ...]:
    """Return a message about levels below ``most``, which `shallow` sums up."""
    deepest = int(profile.depths().max())
    if deepest <= most:
        return ()
    return (f"levels below {most} of {deepest} are summed into those above",)


def whole_numbers(column: MetricColumn, own: Array) -> Integers:
    """Return values as whole numbers, the largest that 64 bits hold at most."""
    if column.kind is ValueKind.INT:
        return own.astype(np.int64)
    found: Integers = np.minimum(np.rint(own), 2.0**63 - 1024).astype(np.int64)
    return found


def shallow(profile: Profile, depth: int) -> Profile:
    """Return the profile with levels below ``depth`` summed up there."""
    # Distributions are not written, and need not be merged.
    bare = replace(profile, distributions={})
    return bare.fold_below(depth) if int(profile.depths().max()) > depth else bare


_BYTES_OF_ROW, _LEAST_BYTES = 1 << 11, 1 << 25
_SEPARATORS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


class FoldedStacks(WriteOnly):
    """Brendan Gregg's collapsed stacks: ``a;b;c 123``."""

    name = "folded"
    suffixes = (".folded",)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        metric = main_metric(profile)
        notes = [
            *flame_losses(profile, [metric]),
            *rounded_note(profile, [metric]),
            *depth_note(profile, _most_depth(flame_rows(profile))),
        ]
        if any(_changed(text) != text for text in profile.strings):
            notes.append("';' in names became ':', and line breaks became spaces")
        return tuple(notes)

    def encode(self, profile: Profile) -> bytes:
        """Return a line for each row with its own value."""
        rows = flame_rows(profile)
        rows = shallow(rows, _most_depth(rows))
        metric = main_metric(rows)
        weights = next(
            whole_numbers(column, own).tolist()
            for column, own in flame_metrics(rows)
            if column.spec.name == metric
        )
        parents, lines = rows.parents.tolist(), []
        path: list[str] = []
        for row, depth in enumerate(rows.depths().tolist()):
            del path[depth:]
            path.append(_changed(_shown(rows, row)))
            if weights[row] > 0:
                # Flame graphs draw a root of their own.
                stack = path[1:] if parents[row] >= 0 else path
                lines.append(f"{';'.join(stack)} {weights[row]}\n")
        return visible_lines("".join(lines)).encode()


def _most_depth(profile: Profile) -> int:
    """Return the depth of the written tree: less if long names would make the file too large."""
    sizes = np.array([len(text) for text in profile.strings], dtype=np.int64)[profile.frames]
    depths, parents = profile.depths(), profile.parents
    found = MAX_DEPTH
    if int(sizes.max()) * min(int(depths.max()), found) <= _BYTES_OF_ROW:
        return found
    lengths = sizes.tolist()
    for row, parent in enumerate(parents[1:].tolist(), start=1):
        lengths[row] += lengths[parent]
    total, most = np.array(lengths), _LEAST_BYTES + _BYTES_OF_ROW * len(profile)
    while found > 1 and int(total[depths <= found].sum()) > most:
        found //= 2
    return found


def _shown(rows: Profile, row: int) -> str:
    frame = flame_frame(rows, row)
    return rows.name(row) if frame.file else frame.name


def _changed(name: str) -> str:
    return _SEPARATORS.sub(" ", name.replace(";", ":")) or "<no name>"


_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = ("nanoseconds", "microseconds", "milliseconds", "seconds", "bytes")
_MOST = 2.0**62  # larger sums of whole numbers are floats


class SpeedscopeFile(WriteOnly):
    """Speedscope's own format, every metric as a tree of open and close events.

    Events are as many as rows, however deep the tree is.
    """

    name = "speedscope"
    suffixes = (".speedscope.json",)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        kept = [column.spec.name for column, _ in flame_metrics(profile)]
        return flame_losses(profile, kept)

    def encode(self, profile: Profile) -> bytes:
        """Return the file."""
        rows = flame_rows(profile)
        numbers: dict[FlameFrame, int] = {}
        frames = [
            numbers.setdefault(flame_frame(rows, row), len(numbers)) for row in range(len(rows))
        ]
        document = {
            "$schema": _SCHEMA,
            "exporter": "proton_bench",
            "name": _text(rows.provenance.get("command")),
            "activeProfileIndex": 0,
            "shared": {"frames": [_plain(frame) for frame in numbers]},
            "profiles": [
                _events(rows, frames, own, spec=column.spec) for column, own in flame_metrics(rows)
            ],
        }
        return json_text(msgspec.json.encode(document).decode()).encode() + b"\n"


def _text(command: Any) -> str:
    return " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command or "")


def _plain(frame: FlameFrame) -> dict[str, Any]:
    found: dict[str, Any] = {"name": frame.name}
    if frame.file:
        found |= {"file": frame.file, "line": frame.line}
    return found


def _events(rows: Profile, frames: list[int], own: Any, *, spec: MetricSpec) -> dict[str, Any]:
    """Return one metric as a timeline: rows open and close, each as wide as its subtree."""
    if own.dtype.kind == "i" and float(own.sum(dtype=np.float64)) >= _MOST:
        own = own.astype(np.float64)
    places = np.concatenate([np.zeros(1, dtype=own.dtype), np.cumsum(own)]).tolist()
    ends = rows.subtree_end.tolist()
    events: list[dict[str, Any]] = []
    opened: list[int] = []

    def close(before: int) -> None:
        while opened and ends[opened[-1]] <= before:
            row = opened.pop()
            events.append({"type": "C", "frame": frames[row], "at": places[ends[row]]})

    for row in range(len(frames)):
        if places[ends[row]] <= places[row]:
            continue
        close(row)
        events.append({"type": "O", "frame": frames[row], "at": places[row]})
        opened.append(row)
    close(len(frames))
    unit = spelled_unit(spec)
    return {
        "type": "evented",
        "name": spec.name,
        "unit": unit if unit in _UNITS else "none",
        "startValue": 0,
        "endValue": places[-1],
        "events": events,
    }


# Fields of the message Profile.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING = 1, 2, 4, 5, 6
_TIME_NANOS, _DURATION_NANOS, _COMMENT, _DEFAULT_TYPE = 9, 10, 13, 14


# Its fields are those of google/pprof's ``proto/profile.proto``.
class PprofFile(WriteOnly):
    """pprof's protocol buffer, compressed; every metric that adds up is a type of sample."""

    name = "pprof"
    suffixes = (".pb.gz",)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        metrics = flame_metrics(profile)
        kept = [column.spec.name for column, _ in metrics]
        return (
            *flame_losses(profile, kept),
            *rounded_note(profile, kept),
            *depth_note(profile, MAX_DEPTH),
        )

    def encode(self, profile: Profile) -> bytes:
        """Return the file; the same profile gives the same bytes."""
        rows = shallow(flame_rows(profile), MAX_DEPTH)
        return gzip.compress(bytes(_Writer(rows).message()), mtime=0)


class _Writer:
    """Tables of texts and functions, and the message that refers to them."""

    def __init__(self, rows: Profile) -> None:
        self._rows = rows
        self._texts: dict[str, int] = {"": 0}
        self._frames: dict[FlameFrame, int] = {}
        self._metrics = flame_metrics(rows)

    def message(self) -> Message:
        """Return the message Profile."""
        found = Message()
        for column, _ in self._metrics:
            found.message(_SAMPLE_TYPE, self._value_type(column.spec))
        self._add_samples(found)
        for frame, number in self._frames.items():
            line = Message().number(1, number).number(2, frame.line)
            found.message(_LOCATION, Message().number(1, number).message(4, line))
            found.message(_FUNCTION, self._function(frame, number))
        self._add_facts(found)
        for text in self._texts:
            found.text(_STRING, text)
        return found

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _value_type(self, spec: MetricSpec) -> Message:
        unit = self._text(spelled_unit(spec) or "count")
        return Message().number(1, self._text(spec.base)).number(2, unit)

    def _function(self, frame: FlameFrame, number: int) -> Message:
        name = self._text(frame.name)
        return (
            Message().number(1, number).number(2, name).number(3, name)
            .number(4, self._text(frame.file)).number(5, frame.line)
        )  # fmt: skip

    def _add_samples(self, found: Message) -> None:
        rows = self._rows
        values = [whole_numbers(column, own).tolist() for column, own in self._metrics]
        # Packed ids of paths, the innermost first: a row's own id, then those of its parent.
        paths: list[bytes] = []
        for row, depth in enumerate(rows.depths().tolist()):
            number = self._frames.setdefault(flame_frame(rows, row), len(self._frames) + 1)
            del paths[depth:]
            paths.append(varint(number) + (paths[-1] if paths else b""))
            own = [column[row] for column in values]
            if any(own):
                found.message(_SAMPLE, Message().packed(1, paths[-1]).numbers(2, own))

    def _add_facts(self, found: Message) -> None:
        start_ns, duration_ns = run_times_ns(self._rows)
        found.number(_TIME_NANOS, start_ns)
        found.number(_DURATION_NANOS, duration_ns)
        found.numbers(_COMMENT, [self._text("written by proton_bench")])
        if "time" in self._texts:
            found.number(_DEFAULT_TYPE, self._text("time"))

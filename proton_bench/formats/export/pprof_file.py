"""`.pb.gz`: a profile for ``go tool pprof`` and compatible tools; only written.

The fields are those of google/pprof's ``proto/profile.proto``.
"""

from __future__ import annotations

import gzip

from proton_bench.formats.base import WriteOnly
from proton_bench.formats.export.flame_rows import (
    MAX_DEPTH,
    FlameFrame,
    depth_note,
    flame_frame,
    flame_losses,
    flame_metrics,
    flame_rows,
    rounded_note,
    run_times_ns,
    shallow,
    spelled_unit,
    whole_numbers,
)
from proton_bench.formats.protobuf import Message, varint
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.profile import Profile

__all__ = ["PprofFile"]

# Fields of the message Profile.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING = 1, 2, 4, 5, 6
_TIME_NANOS, _DURATION_NANOS, _COMMENT, _DEFAULT_TYPE = 9, 10, 13, 14


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

"""PC samples by source line, over all kernels and call paths."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from proton_bench.analysis.kernels.gpu_facts import sampling_facts
from proton_bench.analysis.kernels.stall_reasons import (
    REASON,
    SELECTED,
    SampleForm,
    has_samples,
    is_sample_count,
    sample_form,
)
from proton_bench.analysis.view.names import NameFilter
from proton_bench.errors import MetricError, UsageError
from proton_bench.model.arrays import Array, Mask
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.model.steps import steps_in

# The first match, because names of functions may contain anything.
_LINE = re.compile(r"(?P<file>.*?):(?P<line>\d{1,9})@(?P<function>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A place in the source.

    Attributes:
        file: Path in the compiler's output.
        line: Number, from 1.
        function: Its kernel.
    """

    file: str
    line: int
    function: str


@dataclass(slots=True)
class SampleCounts:
    """Samples of one thing.

    Attributes:
        total: All of them.
        parts: Samples by outcome of the cycle: ``issued``, ``stalled`` and ``not_issued``.
        reasons: Samples by the metric of the reason.
    """

    total: int = 0
    parts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: SampleCounts) -> None:
        """Add samples of another thing."""
        self.total += other.total
        self.parts.update(other.parts)
        self.reasons.update(other.reasons)

    def share(self, part: str) -> float:
        """Return a part as a share of all, 0 without samples."""
        return self.parts[part] / self.total if self.total else 0.0

    def waits(self) -> list[tuple[str, int]]:
        """Return the reasons that a warp waited for, the most frequent first."""
        found = [each for each in self.reasons.items() if each[0] != SELECTED and each[1] > 0]
        return sorted(found, key=lambda each: (-each[1], each[0]))


@dataclass(frozen=True, slots=True)
class SampledFile:
    """A file of the source.

    Attributes:
        path: As the compiler wrote it.
        samples: Of all its lines.
        lines: Samples of its lines by number.
        functions: Names of the functions that lines are in, by number.
    """

    path: str
    samples: SampleCounts
    lines: dict[int, SampleCounts]
    functions: dict[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SampledSource:
    """Samples of a profile by place in the source.

    Attributes:
        samples: All samples of the chosen rows.
        files: Files, the hottest first.
        unplaced: Samples of kernels without a known line, by name, the hottest first.
    """

    samples: SampleCounts
    files: tuple[SampledFile, ...]
    unplaced: tuple[tuple[str, SampleCounts], ...]


def parse_line(name: str) -> SourceLine | None:
    """Return the place that a row ``dir/file:line@function`` names, None for other names."""
    match = _LINE.fullmatch(name)
    if match is None:
        return None
    return SourceLine(match["file"], int(match["line"]), match["function"])


def sampled_source(profile: Profile, names: NameFilter | None = None) -> SampledSource:
    """Return the samples of a profile by line.

    Args:
        profile: What was recorded.
        names: Rows to look at, with those below them; None for all.

    Raises:
        MetricError: The profile has no PC samples.
        UsageError: A regular expression is malformed, or keeps no samples.
    """
    if not has_samples(profile):
        raise MetricError(_why_none(profile))
    keep = _kept(profile, names or NameFilter())
    columns, form = _columns(profile), sample_form(profile)
    rows = np.flatnonzero(keep & (columns[form.total] > 0))
    if not len(rows):
        if names:
            raise UsageError(f"the profile has no PC samples to show: {names} leaves none")
        raise UsageError(_why_none(profile))
    # Those of all steps, because a part of a sample is none.
    steps = steps_in(profile)
    whole = {
        name: np.rint(values * steps).astype(np.int64).tolist() for name, values in columns.items()
    }
    return _gathered(profile, rows.tolist(), _Own(whole, form))


def _why_none(profile: Profile) -> str:
    facts = sampling_facts(profile)
    if facts is None and not has_samples(profile):
        return "the profile has no PC samples: record them with `proton run -m pcsampling`"
    period = "" if facts is None or not facts.period_cycles else f" of {facts.period_cycles} cycles"
    why = (
        facts.error
        if facts is not None and facts.error
        else (f"no kernel ran while it sampled, or none for longer than the period{period}")
    )
    return f"the profile has no PC samples, although the run sampled: {why}"


def _kept(profile: Profile, names: NameFilter) -> Mask:
    ends = profile.subtree_end
    return names.keep(profile.strings, ends, lambda named: named[profile.frames])


def _columns(profile: Profile) -> dict[str, Array]:
    """Return each row's own values, by the base names of metrics in lower case."""
    found: dict[str, Array] = {}
    for column in profile.columns.values():
        base = column.spec.base.lower()
        if is_sample_count(base) and column.kind.is_number:
            known = column.known
            found[base] = np.where(known, column.values, 0)
    return found


@dataclass(frozen=True, slots=True)
class _Own:
    """Each row's own values, and their meaning."""

    columns: dict[str, list[int]]
    form: SampleForm

    def counts(self, row: int) -> SampleCounts:
        own = {name: n for name, values in self.columns.items() if (n := values[row])}
        parts = {
            part: sum(sign * own.get(name, 0) for name, sign in sums.items())
            for part, sums in self.form.parts.items()
        }
        reasons = {name: n for name, n in own.items() if name.startswith(REASON)}
        return SampleCounts(own.get(self.form.total, 0), Counter(parts), Counter(reasons))


@dataclass(slots=True)
class _File:
    """A file while samples are added."""

    lines: dict[int, SampleCounts] = field(default_factory=dict)
    functions: dict[int, dict[str, None]] = field(default_factory=dict)

    def line(self, place: SourceLine) -> SampleCounts:
        self.functions.setdefault(place.line, {})[place.function] = None
        return self.lines.setdefault(place.line, SampleCounts())

    def sampled(self, path: str) -> SampledFile:
        return SampledFile(
            path,
            _sum(list(self.lines.values())),
            dict(sorted(self.lines.items())),
            {line: tuple(names) for line, names in self.functions.items()},
        )


def _gathered(profile: Profile, rows: Sequence[int], own: _Own) -> SampledSource:
    total = SampleCounts()
    files: defaultdict[str, _File] = defaultdict(_File)
    unplaced: defaultdict[str, SampleCounts] = defaultdict(SampleCounts)
    for row in rows:
        place, counts = _place(profile, row), own.counts(row)
        if place is None:
            unplaced[profile.name(row)].add(counts)
        else:
            files[place.file].line(place).add(counts)
        total.add(counts)
    found = [file.sampled(path) for path, file in files.items()]
    return SampledSource(
        total,
        tuple(sorted(found, key=lambda each: (-each.samples.total, each.path))),
        tuple(sorted(unplaced.items(), key=lambda each: (-each[1].total, each[0]))),
    )


def _place(profile: Profile, row: int) -> SourceLine | None:
    return parse_line(profile.name(row)) if profile.kind(row) is FrameKind.LINE else None


def _sum(lines: Sequence[SampleCounts]) -> SampleCounts:
    found = SampleCounts()
    for each in lines:
        found.add(each)
    return found

"""The answer to "why is it slow": one sentence, findings, the rows that cost most, what is missing.

A row is chosen by a part of its name or path; then everything is said about it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile

import numpy as np

from proton_bench.analysis.accounting.device_use import SAMPLED
from proton_bench.analysis.accounting.host_time import own_lines
from proton_bench.analysis.kernels.gpu_facts import are_missing
from proton_bench.analysis.naming.readable import Readable, texts_of
from proton_bench.analysis.view.names import stable_name
from proton_bench.analysis.why.findings import FINDINGS, find
from proton_bench.analysis.why.memory import memory_evidence, peak_memory
from proton_bench.analysis.why.row_facts import Ceilings
from proton_bench.analysis.why.run import BACKWARD, WholeRun
from proton_bench.analysis.why.verdict import Evidence, Finding, Verdict
from proton_bench.errors import UsageError
from proton_bench.model.profile import Profile
from proton_bench.model.steps import Steps
from proton_bench.support.units import duration_text, share_text

# Between the names of a path; the arrow is what a terminal shows.
_SEPARATOR, _ARROW = "/", "›"
MOST_ROWS = 100
_LEAST_PART = 0.01  # of the run
_TOP_LEVEL = " <module>"
_WORDS = re.compile(r"[^\s:]+")
_MOST_ADDED = 2  # names that tell rows of equal places apart


@dataclass(frozen=True, slots=True)
class WhyRow:
    """One row with its verdict.

    Attributes:
        path: Names as they are shown, from below the root down to the row.
        place: The innermost layer, scope or frame above it, the name of the row, and between or
            before them those that tell it apart from other rows of the answer.
        kind: Number of its `FrameKind`.
        time_ns: Time of the row and all rows below it.
        launches: Calls of the row, or else launches below it; 0 if unknown.
        verdict: The verdict.
    """

    path: tuple[str, ...]
    place: tuple[str, ...]
    kind: int
    time_ns: float
    launches: float
    verdict: Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Everything that `proton why` says.

    Attributes:
        sentence: How much of the run the GPU worked.
        gpu: Name of the GPU, "" if unknown.
        device: "GPU", or "CPU" if no other device worked; "" if unknown.
        span_ns: How long the run took, or what is known of it.
        is_length_known: Whether that is the run or the time in which its devices were used, not
            the sum of all work.
        work_ns: Time of all work on devices.
        idle_ns: Time in which no device worked, 0 if unknown.
        findings: About the whole run, the one that can save most first; or the chosen one.
        rows: Rows with time of their own, the most expensive first; or the chosen row, or those
            that the chosen finding is about.
        smaller: Rows that are left out, because they are smaller than `MOST_ROWS` others.
        others: Further rows that were chosen, by their paths.
        ceilings: What units of this GPU reach, None without counters.
        missing: What was not measured, and how to measure it.
        host: Where the host was while the GPU was idle, or outside of recorded work where no GPU
            worked.
        memory: What holds the memory of GPUs at its peak, and what grows; only about the whole run.
        below: The chosen row and the rows below it, as findings number them.
        steps: The steps that the run is the mean of, None for a whole run.
    """

    sentence: str
    gpu: str
    device: str
    span_ns: float
    is_length_known: bool
    work_ns: float
    idle_ns: float
    findings: tuple[Finding, ...]
    rows: tuple[WhyRow, ...]
    smaller: int = 0
    others: tuple[tuple[str, ...], ...] = ()
    ceilings: Ceilings | None = None
    missing: tuple[str, ...] = ()
    host: tuple[Evidence, ...] = ()
    memory: tuple[Evidence, ...] = ()
    below: frozenset[int] = frozenset()
    steps: Steps | None = None

    @property
    def together_ns(self) -> float:
        """What all findings together can save at most."""
        return sum(finding.own_ns for finding in self.findings)


def why(profile: Profile, path: str | None = None) -> Answer:
    """Return why a run, or one row of it, takes its time.

    Args:
        profile: The profile as it was recorded.
        path: The id of a finding of the run, for this finding and the rows that it is about. Or a
            part of a row's name or path, with ``/`` or ``›`` between names, in any case; the most
            expensive row that has it is chosen, of rows with that name if there are any. None is
            about the whole run.

    Raises:
        UsageError: No row with time has that path.
    """
    run, texts = _readable(profile, Readable())
    found = [] if path is None else _chosen(run, texts, path)
    if path is not None and not found and path not in {rule.id for rule in FINDINGS}:
        run, texts = _readable(profile, Readable(fold_layers=False))  # it may name an equal layer
        found = _chosen(run, texts, path)
    findings = find(run)
    finding = next((each for each in findings if path in {*_names(each, is_row=bool(found))}), None)
    if finding is not None:
        findings, found = (finding,), [row for row in finding.rows if run.verdicts.of(row)]
    elif path is not None and not found:
        raise UsageError(
            f"no finding is {path!a}, and no row with time has it in its name or path: "
            "proton view shows the rows"
        )
    own_ns = run.verdicts.facts.own_ns
    others: tuple[tuple[str, ...], ...] = ()
    smaller = 0
    if path is None:
        every = sorted(run.verdicts.facts.rows(), key=lambda row: -float(own_ns[row]))
        rows, smaller = every[:MOST_ROWS], max(len(every) - MOST_ROWS, 0)
    elif finding is not None:
        rows, smaller = found[:MOST_ROWS], max(len(found) - MOST_ROWS, 0)
    else:
        rows, others = found[:1], tuple(_path(run, texts, row) for row in found[1:MOST_ROWS])
    return Answer(
        sentence=_sentence(run),
        gpu=_gpu(profile),
        device=_device(run),
        span_ns=run.span_ns,
        is_length_known=run.is_length_known,
        work_ns=run.work_ns,
        idle_ns=run.idle_ns,
        steps=Steps.of(run.recorded.provenance),
        findings=findings,
        rows=tuple(
            _row(run, texts, row, place=place, is_own=path is None)
            for row, place in zip(rows, _places(run, texts, rows), strict=True)
        ),
        smaller=smaller,
        others=others,
        ceilings=run.verdicts.facts.ceilings if run.verdicts.facts.has_counters else None,
        missing=_missing(run),
        host=_host(run),
        memory=_memory(run, texts) if path is None else (),
        below=frozenset(_below(run, rows[0])) if path is not None and rows else frozenset(),
    )


def _names(finding: Finding, *, is_row: bool) -> Iterator[str]:
    """Yield what chooses a finding: its id and, where no row has it, words of its lines of code."""
    yield finding.id
    for each in () if is_row else finding.evidence:
        if each.id == "host.line":
            words = _WORDS.findall(each.text.partition(" in ")[2])
            yield from (word for word in words if not word.isdigit())


def _below(run: WholeRun, row: int) -> range:
    return range(row, int(run.profile.subtree_end[row]))


def _readable(profile: Profile, readable: Readable) -> tuple[WholeRun, tuple[str, ...]]:
    """Return the run of a profile, and what to show for each of its names."""
    run = WholeRun.of(profile, readable)
    shown = run.profile
    rows = [(shown.frames, shown.kinds)]
    return run, texts_of(shown.strings, rows, readable, provenance=shown.provenance)


def _row(
    run: WholeRun, texts: tuple[str, ...], row: int, *, place: tuple[str, ...], is_own: bool
) -> WhyRow:
    verdict = run.verdicts.own(row) if is_own else run.verdicts.of(row)
    assert verdict is not None
    times = run.verdicts.facts.own_ns if is_own else run.verdicts.time_ns
    return WhyRow(
        path=_path(run, texts, row),
        place=place,
        kind=int(run.profile.kinds[row]),
        time_ns=float(times[row]),
        launches=run.verdicts.facts.launches(row),
        verdict=verdict,
    )


def _places(
    run: WholeRun, texts: tuple[str, ...], rows: Sequence[int]
) -> Iterator[tuple[str, ...]]:
    """Yield for each row its owner and its name, with names that tell it apart from the others."""
    paths = [_path(run, texts, row) for row in rows]
    owners = [run.owners[row] for row in rows]
    depths = [len(_path(run, texts, owner)) - 1 if owner > 0 else -1 for owner, _ in owners]
    kept = [{depth, len(path) - 1} - {-1} for depth, path in zip(depths, paths, strict=True)]

    def place(number: int) -> tuple[str, ...]:
        path, (_, is_backward) = paths[number], owners[number]
        of_owner = [path[at] for at in sorted(kept[number]) if at <= depths[number]]
        below = [path[at] for at in sorted(kept[number]) if at > depths[number]]
        return (*of_owner, *([BACKWARD] if is_backward else ()), *below)

    for _ in range(_MOST_ADDED):
        equal = defaultdict(list)
        for number in range(len(rows)):
            equal[place(number)].append(number)
        for numbers in equal.values():
            names = zip(*(paths[number] for number in numbers), strict=False)
            shared = sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, names))
            for number in numbers:
                kept[number] |= {shared} if shared < len(paths[number]) else set()
    return map(place, range(len(rows)))


def _path(run: WholeRun, texts: tuple[str, ...], row: int) -> tuple[str, ...]:
    names: list[str] = []
    while row > 0:
        names.append(texts[int(run.profile.frames[row])])
        row = int(run.profile.parents[row])
    return tuple(reversed(names)) or (run.profile.name(0),)


def _chosen(run: WholeRun, texts: tuple[str, ...], wanted: str) -> list[int]:
    """Return the rows that have this in their path and no such row above, largest first.

    The last part of a path is in the name of the row, and the others in names above it, in order.
    Rows with that path come first, then those whose names are these parts, then those that have its
    numbers as a whole: ``h.1`` is not ``h.11``.
    """
    profile = run.profile
    text = wanted.replace(_ARROW, _SEPARATOR).strip().lower()
    parts = _parts(text)
    names = [
        (shown.lower(), recorded.lower())
        for shown, recorded in zip(texts, profile.strings, strict=True)
    ]

    def has(row: int, part: str) -> bool:
        return any(part in name for name in names[int(profile.frames[row])])

    # How many of the parts the names from the root down to each row have.
    matched = [0] * len(profile)
    found: list[int] = []
    row = 0
    while parts and row < len(profile):
        above = int(profile.parents[row])
        matched[row] = matched[above] if above >= 0 else 0
        is_last = matched[row] == len(parts) - 1
        has_part = has(row, parts[matched[row]])
        # Paths of files have the same separator.
        if ((is_last and has_part) or has(row, text)) and run.verdicts.time_ns[row] > 0:
            found.append(row)
            row = int(profile.subtree_end[row])
            continue
        matched[row] += has_part and not is_last
        row += 1
    # These may be below a row that only has a part of their name in its own.
    found = list(dict.fromkeys(chain(found, _named(run, texts, parts))))
    whole = [re.compile(re.escape(part) + r"(?!(?<=\d)\d)") for part in parts]

    def key(row: int) -> tuple[bool, bool, bool, float]:
        path = _path(run, texts, row)
        joined = _SEPARATOR.join(path)
        return (
            _parts(joined) != parts,
            not _is_named(path, parts),
            not _in_order(whole, joined.lower()),
            -float(run.verdicts.time_ns[row]),
        )

    return sorted(found, key=key)


def _parts(text: str) -> list[str]:
    parts = text.replace(_ARROW, _SEPARATOR).lower().split(_SEPARATOR)
    # Rows are without Inductor's running numbers, which diffs and generated code have.
    return [stable_name(part) for each in parts if (part := each.strip())]


def _named(run: WholeRun, texts: tuple[str, ...], parts: list[str]) -> Iterator[int]:
    """Yield the rows with time whose names are these parts, and no such row above."""
    is_end = np.array([_is_end(text, parts) for text in texts], dtype=np.bool_)
    rows: list[int] = np.flatnonzero(
        is_end[run.profile.frames] & (run.verdicts.time_ns > 0)
    ).tolist()
    end = 1  # without the root
    for row in rows:
        if row >= end and _is_named(_path(run, texts, row), parts):
            yield row
            end = int(run.profile.subtree_end[row])


def _is_end(name: str, parts: list[str]) -> bool:
    tail = _parts(name)
    return bool(tail) and parts[-len(tail) :] == tail


def _is_named(path: tuple[str, ...], parts: list[str]) -> bool:
    """Return whether the last name of a path ends the parts, and the others name rows above."""
    if not _is_end(path[-1], parts):
        return False
    above = iter(_parts(_SEPARATOR.join(path[:-1])))
    return all(part in above for part in parts[: len(parts) - len(_parts(path[-1]))])


def _in_order(patterns: Sequence[re.Pattern[str]], text: str) -> bool:
    place = 0
    for pattern in patterns:
        match = pattern.search(text, place)
        if match is None:
            return False
        place = match.end()
    return True


# -- the run -------------------------------------------------------------------------------------
def _sentence(run: WholeRun) -> str:
    if not run.work_ns > 0:
        return "no time of work on a device was recorded"
    if run.is_one_by_one:
        work = duration_text(run.work_ns)
        return f"GPU work of {work}; it idled because {SAMPLED}, so this file says no more of that"
    if run.is_idle_known and not run.is_length_known:
        return f"GPU work of {duration_text(run.work_ns)}, idle for {duration_text(run.idle_ns)}"
    if run.is_idle_known:
        number = len(run.devices)
        # Of merged processes it is the mean of their GPUs.
        which = "GPU" if number <= 1 else "GPUs" if run.per_device == 1.0 else f"all {number} GPUs"
        text = f"{which} idle {_percent(run.idle_ns / run.span_ns)} of the {run.word}"
        parts = (
            (run.outside_ns, "before or after its work"),
            (run.between_ns, "between kernels"),
            (run.recording_ns, "because it was recorded"),
        )
        shown = [
            f"{_percent(part_ns / run.span_ns)} {words}"
            for part_ns, words in parts
            if part_ns >= _LEAST_PART * run.span_ns
        ]
        return f"{text}: {', '.join(shown)}" if len(shown) > 1 else text
    if not _device(run):
        return f"work of {duration_text(run.work_ns)}; this file does not say on which device"
    if _device(run) == "CPU":
        text = "no GPU work was recorded: elapsed times of operators and scopes"
        recorded_ns = run.times.host_recorded_ns
        part = (run.work_ns if recorded_ns is None else recorded_ns) / run.span_ns
        return (
            f"{text}, {_percent(part)} of the {run.word}"
            if run.times.wall_ns and part <= 1
            else text
        )
    return f"GPU work of {duration_text(run.work_ns)}; this file does not say how long it was idle"


def _host(run: WholeRun) -> tuple[Evidence, ...]:
    """Return the lines of own code at which the host was while the GPU was idle.

    Where no GPU worked, they are those outside of recorded work, after their time together.
    """
    whole_ns = run.times.host_not_recorded_ns
    if not run.times.wall_ns or whole_ns is None:
        return ()
    is_idle = run.is_idle_known or _device(run) == "GPU"
    found = [
        ("host.line", f"in {line.removesuffix(_TOP_LEVEL)}", spent_ns)
        for _, line, spent_ns in own_lines(
            run.recorded, run.span_ns, by="idle" if is_idle else "wall"
        )
    ]
    if not is_idle and whole_ns >= _LEAST_PART * run.span_ns:
        found.insert(0, ("host.outside", f"of the {run.word}", whole_ns))
    return tuple(
        Evidence(id_, f"{_percent(spent_ns / run.span_ns)} {words}", float(spent_ns), "ns")
        for id_, words, spent_ns in found
    )


def _memory(run: WholeRun, texts: tuple[str, ...]) -> tuple[Evidence, ...]:
    memory = peak_memory(run.profile)
    return () if memory is None else memory_evidence(memory, run.profile, texts)


def _device(run: WholeRun) -> str:
    kinds = run.verdicts.facts.device_kinds
    return "CPU" if kinds == {"CPU"} else "GPU" if kinds else ""


def _percent(fraction: float) -> str:
    return share_text(fraction, decimals=0)


def _gpu(profile: Profile) -> str:
    gpus = profile.provenance.get("gpus_at_start")
    first = gpus[0] if isinstance(gpus, tuple) and gpus else None
    name = first.get("name") if isinstance(first, Mapping) else None
    return name if isinstance(name, str) else ""


def _missing(run: WholeRun) -> tuple[str, ...]:
    """Return what this run did not record, the most useful first."""
    facts, kinds = run.verdicts.facts, run.verdicts.facts.device_kinds
    found: list[str] = []
    if "CUDA" in kinds and not facts.has_counters:
        # A run that asked for counters gets the reason why they are missing, not the same advice.
        said = "proton view says why its counters are missing"
        how = said if are_missing(run.recorded) else "proton run -m counters"
        found.append(f"what limits kernels ({how})")
    if "CPU" in kinds and facts.processor_refusal:
        found.append("instructions (proton doctor says why)")
    if "CUDA" in kinds and not facts.has_stalls:
        found.append("what warps wait for (proton run -m pcsampling)")
    if kinds and kinds != {"CPU"} and not run.times.is_sampled:
        found.append("what the host did while the GPU was idle")
    if facts.has_counters and not facts.ceilings.measured:
        found.append("this GPU's ceilings (proton doctor --calibrate)")
    return tuple(found)
